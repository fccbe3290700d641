# SPDX-License-Identifier: MIT
#
# JSON and the frames that hold it. All of it is raw vectors: an R string holds neither any byte
# nor, quickly, a big picture.

kind <- list(ready = 0x30L, display = 0x31L, result = 0x32L, error = 0x33L, done = 0x34L)
frame_limit <- 48 * 2^20
value_limit <- frame_limit - 2^16 # what is left is for the rest of the frame
text_limit <- 2^20                # of an error's message and of its traceback
calls_limit <- 50L                # calls of a traceback, from each end

to_bytes <- function(text) {
    if (is.raw(text)) return(text)
    text <- paste(text, collapse = "\n")
    if (Encoding(text) == "latin1") text <- enc2utf8(text)
    charToRaw(text)
}

json_string <- function(text) {
    quote <- as.raw(0x22)
    c(quote, .Call(native$escape, to_bytes(text)), quote)
}

# A named list of values that are JSON already. No loop here, nor in what else each cell runs: R
# would compile the function, which costs the first cell 25 ms.
json_object <- function(members) {
    if (length(members) == 0L) return(charToRaw("{}"))
    parts <- Map(function(key, value) c(as.raw(0x2c), json_string(key), as.raw(0x3a), value),
                 names(members), members)
    parts[[1L]][[1L]] <- as.raw(0x7b)
    c(unlist(parts, use.names = FALSE), as.raw(0x7d))
}

is_binary <- function(mime) {
    grepl("^(image/(png|jpeg|gif|webp)|audio/.*|video/.*|application/pdf)$", mime)
}

is_json <- function(mime) grepl("^application/(.*\\+)?json$", mime)

json_value <- function(data) {
    if (!requireNamespace("jsonlite", quietly = TRUE)) return(json_string(format(data)))
    text <- is.character(data) && length(data) == 1L && jsonlite::validate(data)
    charToRaw(enc2utf8(as.character(if (text) data else jsonlite::toJSON(data, auto_unbox = TRUE))))
}

mime_value <- function(mime, data) {
    if (startsWith(mime, "text/")) return(json_string(data))
    if (is_json(mime)) return(json_value(data))
    if (!is_binary(mime)) return(json_string(data))
    if (!is.raw(data)) return(json_string(gsub("[[:space:]]", "", paste(data, collapse = ""))))
    c(as.raw(0x22), .Call(native$base64, data), as.raw(0x22))
}

# {mime: value}; values that do not fit are replaced by a note.
mime_map <- function(data) {
    values <- Map(mime_value, names(data), data)
    over <- cumsum(as.numeric(lengths(values))) > value_limit
    if (any(over)) {
        note <- sprintf("[%s of %.0f bytes left out: over the limit of %.0f bytes]",
                        names(data)[over], lengths(values)[over], value_limit)
        values <- c(values[!over], list("text/plain" = json_string(note)))
    }
    json_object(values)
}

send <- function(type, members) .Call(native$send, kind[[type]], json_object(members))

send_data <- function(type, data, metadata = list()) {
    metadata <- json_object(lapply(metadata, json_value))
    send(type, list(data = mime_map(data), metadata = metadata))
}

# Nothing may cut a frame in two, so an interrupt waits for its end.
display <- function(data, metadata = list()) {
    suspendInterrupts(send_data("display", data, metadata))
    invisible()
}

# Where the character begins that holds the byte at a place.
char_begin <- function(bytes, at) {
    near <- at - 0:3
    near[match(TRUE, bitwAnd(as.integer(bytes[near]), 0xc0L) != 0x80L, nomatch = 1L)]
}

# Head and tail of a text that is too long.
clip <- function(text) {
    bytes <- to_bytes(text)
    n <- length(bytes)
    if (n <= text_limit) return(bytes)
    head <- char_begin(bytes, text_limit %/% 2L) - 1L
    tail <- char_begin(bytes, n - text_limit %/% 2L)
    note <- charToRaw(sprintf("\n[... %.0f bytes left out ...]\n", tail - 1 - head))
    c(bytes[seq_len(head)], note, bytes[tail:n])
}
