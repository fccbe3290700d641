# SPDX-License-Identifier: MIT
#
# One cell: parsed as a whole, then an expression at a time.

expressions <- NULL
at <- 0L
cells <- 0L    # how many there were
after <- NULL  # the function that goes on when the staged call is over
output <- NULL # list(connection, depth) while the printed value is caught
rich <- NULL   # the MIME map of a value that is not text
warned <- NULL # the warnings that R had printed when the cell began

stage <- function(call, env, follow, then) {
    after <<- then
    .Call(native$stage, call, env, follow)
}

is_last <- function() at == length(expressions)

catch_begin <- function() {
    connection <- rawConnection(raw(0L), "w")
    output <<- list(connection = connection, depth = sink.number())
    sink(connection)
}

# The text that was caught, without the line end.
catch_end <- function() {
    lapply(seq_len(max(0L, sink.number() - output$depth)), function(i) sink())
    text <- rawConnectionValue(output$connection)
    close(output$connection)
    output <<- NULL
    n <- length(text)
    if (n && text[[n]] == 0x0a) length(text) <- n - 1L
    text
}

show_html <- function(value) {
    page <- html_data(value)
    if (is_last()) rich <<- page else display(page)
}

# How R's prompt prints a value: S3 methods are looked up from the global environment.
print_call <- function(value) {
    env <- new.env(parent = .BaseNamespaceEnv)
    env$x <- value
    list(if (isS4(value)) quote(methods::show(x)) else quote(print(x)), env)
}

# What to evaluate for a value: the last one is printed into the result.
follow_value <- function(outcome) {
    if (is.symbol(outcome$value) && !nzchar(as.character(outcome$value))) return(NULL)
    value <- outcome$value
    assign(".Last.value", value, envir = baseenv())
    if (!outcome$visible || is_last() && is.null(value)) return(NULL)
    if (is_html(value)) return(list(as.call(list(show_html, value)), globalenv()))
    if (is_last()) catch_begin()
    print_call(value)
}

visible_call <- function(expression) {
    as.call(list(.Internal, as.call(list(quote(withVisible), expression))))
}

expression_next <- function() {
    if (.Call(native$interrupted)) {
        failure_new("interrupt", "interrupted", status = "interrupted")
        return(cell_end())
    }
    if (is_last()) return(cell_end())
    at <<- at + 1L
    stage(visible_call(expressions[[at]]), globalenv(), follow_value, expression_done)
}

expression_done <- function() {
    if (!is.null(failure)) { # of code that another library caught at its own top level
        cat(failure$head, "\n", sep = "", file = stderr())
        failure <<- NULL
    }
    if (length(devices))
        attempt(if (is_last()) plots_close() else plots_shoot(expressions[-seq_len(at)]))
    result <- rich
    if (!is.null(output)) {
        text <- catch_end()
        if (length(text)) result <- list("text/plain" = text)
    }
    if (!is.null(result)) send_data("result", result)
    stage(NULL, NULL, NULL, expression_next)
}

# A text that holds the whole cell; the parser's messages quote its lines.
cell_parse <- function(code) {
    cells <<- cells + 1L
    name <- sprintf("<cell %d>", cells)
    if (any(code == 0)) stop("the code holds a zero byte")
    text <- rawToChar(code)
    Encoding(text) <- "UTF-8"
    if (!validUTF8(text)) stop("the code is not UTF-8")
    lines <- strsplit(gsub("\r\n", "\n", text, fixed = TRUE), "\n", fixed = TRUE)[[1L]]
    parse(text = lines, srcfile = srcfilecopy(name, lines), keep.source = TRUE)
}

cell_begin <- function() {
    at <<- 0L
    expressions <<- rich <<- failure <<- NULL
    warned <<- get0("last.warning", baseenv())
    .Internal(seterrmessage(""))
    handlers_set()
    expressions <<- tryCatch(cell_parse(.Call(native$code)), error = function(e) {
        failure_new("parseError", conditionMessage(e))
        NULL
    })
    if (is.null(failure)) expression_next() else cell_end()
}

# After a jump that none of our handlers made: R has printed why.
failure_unknown <- function() {
    message <- sub("\n$", "", geterrmessage())
    if (!nzchar(message)) message <- "the code jumped to top level"
    failure_new("error", sub("^Error[^:]*: *", "", message))
    failure$head <<- message
}

cell_end <- function() {
    if (!is.null(output)) {
        text <- catch_end()
        if (length(text)) cat(rawToChar(text[text != 0]), "\n", sep = "")
    }
    if (length(devices)) attempt(plots_close())
    status <- "ok"
    if (!is.null(failure)) {
        status <- failure$status
        error_send()
    }
    expressions <<- NULL
    send("done", list(status = json_string(status)))
}

step <- function() {
    then <- after
    after <<- NULL
    if (is.null(then)) {
        cell_begin()
    } else if (.Call(native$completed)) {
        then()
    } else {
        if (is.null(failure)) failure_unknown()
        cell_end()
    }
}
