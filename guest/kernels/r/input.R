# SPDX-License-Identifier: MIT
#
# Input. What else reads R's console, as browser() does, is served in C.

# `call` is what the code called; it is to blame where nobody can answer.
ask <- function(prompt, call, password = FALSE) {
    request <- list(prompt = json_string(prompt),
                    password = charToRaw(if (password) "true" else "false"))
    line <- .Call(native$input, json_object(request))
    if (is.null(line)) {
        text <- "%s() was called, but nobody can answer it in this run"
        text <- sprintf(text, deparse_first(call[[1L]]))
        stop(structure(class = c("noInputError", "error", "condition"),
                       list(message = text, call = call)))
    }
    line <- rawToChar(line[line != 0])
    Encoding(line) <- "UTF-8"
    line
}

readline <- function(prompt = "") {
    line <- ask(prompt, sys.call())
    trimws(line, "both", "[ \t]")
}

menu <- function(choices, graphics = FALSE, title = NULL) {
    if (length(title) && nzchar(title[[1L]])) cat(title[[1L]], "\n")
    cat("", paste0(format(seq_along(choices)), ": ", choices), "", sep = "\n")
    repeat {
        answer <- ask("Selection: ", sys.call())
        number <- suppressWarnings(as.integer(answer))
        if (is.na(number)) number <- match(answer, choices)
        if (!is.na(number) && number >= 0L && number <= length(choices)) return(number)
        cat(gettext("Enter an item from the menu, or 0 to exit\n"))
    }
}

is_stdin <- function(con) {
    if (inherits(con, c("file", "terminal"))) con <- summary(con)$description
    identical(con, "stdin")
}

# Lines until `enough` of them say so, or nobody answers any more.
ask_lines <- function(call, enough) {
    lines <- ask("", call)
    while (!enough(lines)) {
        line <- tryCatch(ask("", call), noInputError = function(e) NULL)
        if (is.null(line)) break
        lines <- c(lines, line)
    }
    lines
}

read_lines <- function(call, n) {
    if (n == 0L) return(character())
    ask_lines(call, function(lines) length(lines) == n)
}

# What scan() takes from a console: up to an empty line, or all that it wants.
scan_lines <- function(call, fields, nlines) {
    ask_lines(call, function(lines) {
        have <- sum(lengths(strsplit(trimws(lines), "[[:space:]]+")))
        !nzchar(lines[[length(lines)]]) || fields > 0 && have >= fields ||
            nlines > 0 && length(lines) >= nlines
    })
}

# Replace a function for the code and for packages alike.
replace_in <- function(env, name, value) {
    locked <- bindingIsLocked(name, env)
    if (locked) unlockBinding(name, env)
    assign(name, value, envir = env)
    if (locked) lockBinding(name, env)
}

# Readers of stdin, which is /dev/null here, ask as well.
stdin_redirect <- function() {
    lines <- base::readLines
    body(lines) <- bquote({
        if (.(is_stdin)(con)) return(.(read_lines)(sys.call(), n))
        .(body(lines))
    })
    replace_in(baseenv(), "readLines", lines)
    fields <- base::scan
    body(fields) <- bquote({
        if (missing(text) && (identical(file, "") || .(is_stdin)(file)))
            text <- .(scan_lines)(sys.call(), max(n, nmax), nlines)
        .(body(fields))
    })
    replace_in(baseenv(), "scan", fields)
}

# An interrupt in system() ends the command; this makes it end the code as well.
system_watch <- function(name) {
    run <- get(name, baseenv())
    last <- length(body(run))
    body(run)[[last]] <- bquote({
        .Call(.(native$system), FALSE)
        on.exit(.Call(.(native$system), TRUE), add = TRUE)
        .(body(run)[[last]])
    })
    replace_in(baseenv(), name, run)
}
