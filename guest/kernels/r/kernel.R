# SPDX-License-Identifier: MIT
#
# The R kernel: runs cells for guest/init, as docs/PROTOCOL.md, section 2, says.
#
#   R --no-echo --no-restore --no-save --no-init-file --no-environ --file=<here>/kernel.R
#
# (no .Rprofile and no .Renviron: those of the work directory are written by the code that runs.)
# Base R can neither wait on an inherited socket, nor ignore SIGINT between cells, nor evaluate an
# expression without a frame of its own on the stack, which would then show in each warning and
# traceback. So sandbox_kernel.so, beside this file, sits in R's own loop: whenever R wants a line, it
# evaluates what was staged, at top level, and calls `step`. A step is short and not interrupted. It
# looks at what came of the staged expression, sends its plots and its value, and stages the next
# one; R prints the warnings between two steps.

local({
    here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
    routines <- getDLLRegisteredRoutines(dyn.load(file.path(here, "sandbox_kernel.so")))$.Call
    native <- lapply(routines, function(routine) routine$address)
    names(native) <- sub("sandbox_", "", names(routines), fixed = TRUE)

    kind <- list(ready = 0x30L, display = 0x31L, result = 0x32L, error = 0x33L, done = 0x34L)
    frame_limit <- 48 * 2^20
    value_limit <- frame_limit - 2^16 # what is left is for the rest of the frame
    text_limit <- 2^20                # of an error's message and of its traceback
    calls_limit <- 50L                # calls of a traceback, from each end

    # JSON, as raw vectors: an R string can hold neither any byte nor, quickly, a big picture.

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

    # A named list of values that are JSON already.
    json_object <- function(members) {
        if (length(members) == 0L) return(charToRaw("{}"))
        keys <- lapply(names(members), json_string)
        parts <- Map(function(key, value) c(as.raw(0x2c), key, as.raw(0x3a), value), keys, members)
        inside <- unlist(parts, use.names = FALSE)[-1L]
        c(as.raw(0x7b), inside, as.raw(0x7d))
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
        if (is_json(mime)) return(json_value(data))
        if (!is_binary(mime)) return(json_string(data))
        if (!is.raw(data)) return(json_string(gsub("[[:space:]]", "", paste(data, collapse = ""))))
        c(as.raw(0x22), .Call(native$base64, data), as.raw(0x22))
    }

    # {mime: value}; a value that does not fit is replaced by a note.
    mime_map <- function(data) {
        values <- list()
        used <- 0
        for (mime in names(data)) {
            value <- mime_value(mime, data[[mime]])
            if (used + length(value) > value_limit) {
                mime_note <- sprintf("[%s of %.0f bytes was left out: the limit is %.0f bytes]",
                                     mime, length(value), value_limit)
                mime <- "text/plain"
                value <- json_string(mime_note)
            }
            used <- used + length(value)
            values[[mime]] <- value
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

    # Head and tail of a text that is too long.
    clip <- function(text) {
        bytes <- to_bytes(text)
        half <- text_limit %/% 2L
        over <- length(bytes) - text_limit
        if (over <= 0) return(bytes)
        c(head(bytes, half), charToRaw(sprintf("\n[... %.0f bytes ...]\n", over)), tail(bytes, half))
    }

    # Plots. A page belongs to the device that R opens by itself; one that the code opened is the
    # code's own. It lives for one cell, and a page is sent when it is finished: when the next one
    # begins, when the cell ends, and at the end of an expression after which the rest of the cell
    # does not look as if it went on drawing on it (`plot(x)`, `lines(y)` is one picture). That is
    # a guess only about the moment: a page that does change later is sent once more.

    devices <- list() # path of the pages -> number, page and display list length of the last shot

    open_device <- function(width = getOption("repr.plot.width", 8),
                            height = getOption("repr.plot.height", 6),
                            units = "in", res = getOption("repr.plot.res", 100), ...) {
        path <- file.path(tempfile("plots-", tempdir(check = TRUE)), "%06d.png")
        dir.create(dirname(path))
        grDevices::png(path, width, height, units = units, res = res, type = "cairo")
        grDevices::dev.control("enable")
        number <- grDevices::dev.cur()
        devices[[path]] <<- list(number = number, size = grDevices::dev.size("px"), res = res,
                                 drawn = 0L, shot = NULL)
        invisible()
    }

    is_open <- function(path) {
        number <- devices[[path]]$number
        number <= length(.Devices) && identical(attr(.Devices[[number]], "filepath"), path)
    }

    # Send the pages that are finished.
    pages_send <- function(path, open = is_open(path)) {
        files <- list.files(dirname(path), full.names = TRUE)
        if (open) files <- head(files, -1L)
        for (file in files) {
            page <- readBin(file, "raw", file.size(file))
            unlink(file)
            if (length(page) > 0L && !identical(page, devices[[path]]$shot))
                display(list("image/png" = page))
            devices[[path]]$shot <<- NULL
        }
    }

    plots_send <- function() for (path in names(devices)) pages_send(path)

    with_device <- function(number, code) {
        old <- grDevices::dev.cur()
        if (old == number) return(code)
        grDevices::dev.set(number)
        on.exit(if (old > 1L) grDevices::dev.set(old))
        code
    }

    # Send a page that is still open, by drawing it once more on a device of its own.
    page_shoot <- function(path) {
        device <- devices[[path]]
        drawn <- length(grDevices::recordPlot()[[1L]])
        if (drawn == 0L || drawn == device$drawn || !graphics::par("page")) return()
        file <- tempfile(fileext = ".png")
        on.exit(unlink(file))
        grDevices::dev.copy(grDevices::png, filename = file, width = device$size[[1L]],
                            height = device$size[[2L]], res = device$res, type = "cairo")
        grDevices::dev.off()
        shot <- readBin(file, "raw", file.size(file))
        if (!identical(shot, device$shot)) display(list("image/png" = shot))
        devices[[path]]$drawn <<- drawn
        devices[[path]]$shot <<- shot
    }

    adds_words <- c(
        "abline", "arrows", "axis", "box", "clip", "dev.copy", "dev.off", "graphics.off", "identify",
        "layout", "legend", "lines", "locator", "matlines", "matpoints", "mtext", "par", "points",
        "polygon", "polypath", "popViewport", "pushViewport", "qqline", "rasterImage", "recordPlot",
        "rect", "rug", "segments", "seekViewport", "symbols", "text", "title", "upViewport")
    begins_words <- c(
        "assocplot", "barplot", "biplot", "boxplot", "cdplot", "contour", "coplot", "curve",
        "dotchart", "filled.contour", "fourfoldplot", "frame", "ggplot", "grid.arrange",
        "grid.newpage", "heatmap", "hist", "image", "interaction.plot", "matplot", "mosaicplot",
        "pairs", "persp", "pie", "plot", "plot.default", "plot.new", "plot.ts", "qplot", "qqnorm",
        "qqplot", "smoothScatter", "spineplot", "stars", "stripchart", "sunflowerplot", "ts.plot")

    # Will the expressions go on with the page that is open?
    goes_on <- function(expressions) {
        for (expression in expressions) {
            if (is.call(expression) && "add" %in% names(expression)) return(TRUE)
            words <- all.names(expression)
            adds <- match(TRUE, words %in% adds_words | grepl("^grid[.](?!newpage|arrange)", words,
                                                              perl = TRUE))
            begins <- match(TRUE, words %in% begins_words)
            if (!is.na(adds) && (is.na(begins) || adds < begins)) return(TRUE)
            if (!is.na(begins)) return(FALSE)
        }
        FALSE
    }

    plots_shoot <- function(rest) {
        plots_send()
        for (path in Filter(is_open, names(devices)))
            if (!goes_on(rest)) with_device(devices[[path]]$number, page_shoot(path))
    }

    plots_close <- function() {
        for (path in names(devices)) {
            if (is_open(path)) {
                old <- grDevices::dev.cur()
                number <- devices[[path]]$number
                grDevices::dev.off(number)
                if (old != number && old > 1L) grDevices::dev.set(old)
            }
            pages_send(path, open = FALSE)
            unlink(dirname(path), recursive = TRUE)
        }
        devices <<- list()
    }

    new_page <- function(...) if (length(devices)) suspendInterrupts(plots_send())

    # HTML widgets and tags, with everything they load put inside: no pandoc, no network.

    file_text <- function(path) {
        text <- readChar(path, file.size(path), useBytes = TRUE)
        Encoding(text) <- "UTF-8"
        text
    }

    mime_of <- function(path) {
        types <- c(png = "image/png", gif = "image/gif", jpg = "image/jpeg", jpeg = "image/jpeg",
                   svg = "image/svg+xml", woff = "font/woff", woff2 = "font/woff2",
                   ttf = "font/ttf", eot = "application/vnd.ms-fontobject")
        type <- types[tolower(tools::file_ext(path))]
        if (is.na(type)) "application/octet-stream" else type[[1L]]
    }

    css_inline <- function(path) {
        text <- file_text(path)
        found <- unique(regmatches(text, gregexpr("url\\([^)]*\\)", text))[[1L]])
        for (url in found) {
            name <- sub("[?#].*$", "", gsub("^url\\([\"' ]*|[\"' ]*\\)$", "", url))
            file <- file.path(dirname(path), name)
            if (!nzchar(name) || grepl("^([a-z]+:|/)", name) || !file.exists(file)) next
            data <- rawToChar(.Call(native$base64, readBin(file, "raw", file.size(file))))
            with <- paste0("url(data:", mime_of(file), ";base64,", data, ")")
            text <- gsub(url, with, text, fixed = TRUE)
        }
        text
    }

    dependency_html <- function(dependency) {
        root <- dependency$src$file
        if (is.null(root))
            return(as.character(htmltools::renderDependencies(list(dependency), "href")))
        if (!is.null(dependency$package)) root <- system.file(root, package = dependency$package)
        name <- function(item) if (is.list(item)) item[["src"]] else item
        scripts <- vapply(dependency$script, function(item) {
            text <- file_text(file.path(root, name(item)))
            paste0("<script>", gsub("</script", "<\\/script", text, fixed = TRUE), "</script>")
        }, "")
        styles <- vapply(dependency$stylesheet, function(item) {
            paste0("<style>", css_inline(file.path(root, name(item))), "</style>")
        }, "")
        paste(c(scripts, styles, dependency$head), collapse = "\n")
    }

    html_page <- function(value) {
        tags <- value
        if (inherits(value, "htmlwidget")) tags <- htmltools::as.tags(value, standalone = TRUE)
        tags <- htmltools::renderTags(tags)
        needs <- htmltools::resolveDependencies(tags$dependencies)
        head <- paste(c(vapply(needs, dependency_html, ""), tags$head), collapse = "\n")
        paste0("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"/>\n", head,
               "</head>\n<body>", tags$html, "</body></html>\n")
    }

    html_data <- function(value) {
        list("text/html" = html_page(value), "text/plain" = sprintf("<%s>", class(value)[[1L]]))
    }

    is_html <- function(value) inherits(value, c("htmlwidget", "shiny.tag", "shiny.tag.list"))

    print_widget <- function(x, ...) {
        display(html_data(x))
        invisible(x)
    }

    # Input. What else reads R's console, as browser() does, is served in C.

    # `call` is what the code called; it is to blame where nobody can answer.
    ask <- function(prompt, call, password = FALSE) {
        request <- list(prompt = json_string(prompt),
                        password = charToRaw(if (password) "true" else "false"))
        line <- .Call(native$input, json_object(request))
        if (is.null(line))
            stop(structure(class = c("noInputError", "error", "condition"), list(
                message = "the code waits for a line of input, and nobody can answer",
                call = call)))
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

    # Failures

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
        ours <- list(quote(.handleSimpleError), quote(h), quote(.signalSimpleWarning))
        while (length(calls)) {
            call <- calls[[length(calls)]]
            if (is.function(call[[1L]]) || any(vapply(ours, identical, NA, call[[1L]])))
                calls <- head(calls, -1L)
            else
                break
        }
        n <- length(calls)
        if (n > 2L * calls_limit) {
            left_out <- n - 2L * calls_limit
            c(vapply(head(calls, calls_limit), call_line, ""),
              sprintf("... %d calls ...", left_out),
              vapply(tail(calls, calls_limit), call_line, ""))
        } else {
            vapply(calls, call_line, "")
        }
    }

    # Where the code itself asked for input.
    calls_to <- function(calls, call) {
        found <- which(vapply(calls, identical, NA, call))
        if (length(found)) head(calls, max(found)) else calls
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
        calls <- head(sys.calls(), -1L)
        call <- conditionCall(condition)
        if (inherits(condition, "noInputError")) calls <- calls_to(calls, call)
        failure_new(class(condition)[[1L]], message, call, calls_of(calls))
        .Internal(seterrmessage(paste0(failure$head, "\n")))
        invokeRestart(to_top_level)
    }

    on_interrupt <- function(condition) {
        if (!.Call(native$evaluating)) return()
        failure_new("interrupt", "interrupted", NULL, calls_of(head(sys.calls(), -1L)),
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

    # Cells

    expressions <- NULL
    at <- 0L
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
        while (sink.number() > output$depth) sink()
        text <- rawConnectionValue(output$connection)
        close(output$connection)
        output <<- NULL
        n <- length(text)
        if (n && text[[n]] == 0x0a) text[-n] else text
    }

    show_html <- function(value) {
        page <- html_data(value)
        if (is_last()) rich <<- page else display(page)
    }

    # What to evaluate for a value: as R's prompt prints it, the last one into the result.
    follow_value <- function(outcome) {
        value <- outcome$value
        assign(".Last.value", value, envir = baseenv())
        if (!outcome$visible || is_last() && is.null(value)) return(NULL)
        if (is_html(value)) return(list(as.call(list(show_html, value)), globalenv()))
        if (is_last()) catch_begin()
        env <- new.env(parent = .BaseNamespaceEnv)
        env$x <- value
        list(if (isS4(value)) quote(methods::show(x)) else quote(print(x)), env)
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
            if (is_last()) plots_close() else plots_shoot(expressions[-seq_len(at)])
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
        if (any(code == 0)) stop("the code holds a zero byte")
        text <- rawToChar(code)
        Encoding(text) <- "UTF-8"
        if (!validUTF8(text)) stop("the code is not UTF-8")
        lines <- strsplit(gsub("\r\n", "\n", text, fixed = TRUE), "\n", fixed = TRUE)[[1L]]
        parse(text = lines, srcfile = srcfilecopy("<cell>", lines), keep.source = TRUE)
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
            cat(rawToChar(text[text != 0]), "\n", sep = "")
        }
        if (length(devices)) plots_close()
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

    # Start

    if (!l10n_info()[["UTF-8"]]) Sys.setlocale("LC_CTYPE", "C.UTF-8")

    library_path <- Sys.getenv("R_LIBS_USER")
    if (nzchar(library_path) && library_path != "NULL") {
        dir.create(library_path, showWarnings = FALSE, recursive = TRUE)
        .libPaths(library_path)
    }
    mirror <- Sys.getenv("SANDBOX_CRAN")
    if (nzchar(mirror)) options(repos = c(CRAN = mirror))

    options(
        device = open_device, bitmapType = "cairo", menu.graphics = FALSE,
        error = quote(invisible()), # else R ends after an error that none of our handlers saw
        askpass = function(prompt) ask(prompt, sys.call(), TRUE),
        pager = function(files, header, title, delete.file) {
            for (file in files) writeLines(gsub("_\b", "", base::readLines(file, warn = FALSE)))
        })
    for (hook in c("plot.new", "grid.newpage")) setHook(hook, new_page)
    setHook(packageEvent("htmlwidgets", "onLoad"), function(...)
        registerS3method("print", "htmlwidget", print_widget, envir = asNamespace("htmlwidgets")))

    replace_in(baseenv(), "readline", readline)
    replace_in(asNamespace("utils"), "menu", menu)
    if ("package:utils" %in% search()) replace_in(as.environment("package:utils"), "menu", menu)
    stdin_redirect()

    attach(list(sandbox_display = function(mime, data, metadata = list()) {
        display(structure(list(data), names = mime), metadata)
    }), name = "tools:sandbox", warn.conflicts = FALSE)
    unlockBinding(".Last.value", baseenv())
    globalCallingHandlers(handlers)

    ready <- list(language = json_string("r"), version = json_string(as.character(getRversion())))
    invisible(.Call(native$start, as.call(list(step)), json_object(ready)))
})
