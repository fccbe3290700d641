# SPDX-License-Identifier: MIT
#
# What becomes of errors and interrupts: type, message, the calls that led there.

deparse_first <- function(call) {
    text <- tryCatch(deparse(call, nlines = 1L)[[1L]], error = function(e) "<call>")
    if (nchar(text) > 200L) paste0(substr(text, 1L, 200L), "...") else text
}

# As R prints an uncaught error.
headline <- function(message, call) {
    if (is.null(call)) return(paste0("Error: ", message))
    call <- deparse_first(call)
    first <- sub("\n.*", "", message)
    long <- nchar(call, "w") + nchar(first, "w") + 12L > 77L
    paste0("Error in ", call, " : ", if (long) "\n  ", message)
}

call_line <- function(call) {
    where <- attr(call, "srcref")
    line <- deparse_first(call)
    if (is.null(where)) return(line)
    file <- basename(attr(where, "srcfile")$filename)
    paste0(line, " at ", file, ":", where[[1L]])
}

traceback_text <- function(head, calls) {
    if (length(calls) == 0L) return(head)
    lines <- paste0(format(seq_along(calls)), ": ", calls)
    paste(c(head, "Traceback:", lines), collapse = "\n")
}

# The calls that led to a condition, without the functions that brought us here.
calls_of <- function(calls) {
    inner <- which(grepl("^(compiler:::|.signalSimpleWarning$)", vapply(calls, function(call)
        if (is.function(call[[1L]])) "" else deparse_first(call[[1L]]), "")))
    if (length(inner)) calls <- utils::head(calls, inner[[1L]] - 1L)
    ours <- list(quote(.handleSimpleError), quote(h))
    while (length(calls)) {
        call <- calls[[length(calls)]]
        if (is.function(call[[1L]]) || any(vapply(ours, identical, NA, call[[1L]])))
            calls <- utils::head(calls, -1L)
        else
            break
    }
    n <- length(calls)
    if (n > 2L * calls_limit) {
        left_out <- n - 2L * calls_limit
        c(vapply(utils::head(calls, calls_limit), call_line, ""),
          sprintf("... %d calls ...", left_out),
          vapply(utils::tail(calls, calls_limit), call_line, ""))
    } else {
        vapply(calls, call_line, "")
    }
}

# Where the code itself asked for input.
calls_to <- function(calls, call) {
    found <- which(vapply(calls, identical, NA, call))
    if (length(found)) utils::head(calls, max(found)) else calls
}

failure <- NULL

failure_new <- function(type, message, call = NULL, calls = character(), status = "error") {
    head <- if (status == "interrupted") message else headline(message, call)
    failure <<- list(type = type, message = message, head = head, calls = calls,
                     status = status)
}

to_top_level <- structure(list("abort", NULL), class = "restart")

on_error <- function(condition) {
    if (!.Call(native$evaluating)) return()
    message <- tryCatch(paste(conditionMessage(condition), collapse = "\n"),
                        error = function(e) "")
    calls <- utils::head(sys.calls(), -1L)
    call <- conditionCall(condition)
    if (inherits(condition, "noInputError")) calls <- calls_to(calls, call)
    failure_new(class(condition)[[1L]], message, call, calls_of(calls))
    .Internal(seterrmessage(paste0(failure$head, "\n")))
    invokeRestart(to_top_level)
}

on_interrupt <- function(condition) {
    if (!.Call(native$evaluating)) return()
    failure_new("interrupt", "interrupted", NULL, calls_of(utils::head(sys.calls(), -1L)),
                "interrupted")
    invokeRestart(to_top_level)
}

handlers <- list(error = on_error, interrupt = on_interrupt)

# The code may take our handlers away, but not for longer than its cell.
handlers_set <- function() {
    now <- globalCallingHandlers()
    if (!any(vapply(now, identical, NA, on_error))) globalCallingHandlers(handlers)
}

system_errors <- c(
    "No such file or directory" = 2L, "Cannot allocate memory" = 12L,
    "Permission denied" = 13L, "Too many open files" = 24L, "File too large" = 27L,
    "No space left on device" = 28L, "Read-only file system" = 30L,
    "Resource temporarily unavailable" = 11L, "Disk quota exceeded" = 122L)

# R keeps no errno; the text of the error, or of a warning of the same expression, tells it.
errno_of <- function(message) {
    now <- get0("last.warning", baseenv())
    if (!identical(now, warned)) message <- c(message, names(now))
    for (text in names(system_errors))
        if (any(grepl(text, message, fixed = TRUE))) return(system_errors[[text]])
    NULL
}

error_send <- function() {
    text <- traceback_text(failure$head, failure$calls)
    error <- list(type = json_string(failure$type), message = json_string(clip(failure$message)),
                  traceback = json_string(clip(text)))
    errno <- errno_of(failure$message)
    if (!is.null(errno)) error$errno <- charToRaw(as.character(errno))
    send("error", error)
}
