# SPDX-License-Identifier: MIT
#
# Plots. A page belongs to the device that R opens by itself; one that the code opened is the
# code's own. It lives for one cell, and a page is sent when it is finished: when the next one
# begins, when the cell ends, and at the end of an expression after which the rest of the cell
# does not look as if it went on drawing on it (`plot(x)`, `lines(y)` is one picture). That is
# a guess only about the moment: a page that does change later is sent once more.

drawing <- FALSE  # on a device of ours that no code knows of
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

# Draw one page on a device of its own; NULL if nothing was drawn.
page_draw <- function(device, draw) {
    file <- tempfile(fileext = ".png", tmpdir = tempdir(check = TRUE))
    old <- grDevices::dev.cur()
    drawing <<- TRUE
    on.exit({
        drawing <<- FALSE
        unlink(file)
    })
    draw(filename = file, width = device$size[[1L]], height = device$size[[2L]],
         res = device$res, type = "cairo")
    grDevices::dev.off()
    if (old > 1L) grDevices::dev.set(old)
    if (file.exists(file)) readBin(file, "raw", file.size(file))
}

# A page on which nothing was drawn, as an error leaves it.
is_blank <- function(page, device) {
    if (length(page) > 4096L) return(FALSE)
    identical(page, page_draw(device, function(...) {
        grDevices::png(...)
        graphics::plot.new()
    }))
}

# Send the pages that are finished.
pages_send <- function(path, open = is_open(path)) {
    device <- devices[[path]]
    files <- list.files(dirname(path), full.names = TRUE)
    if (open) files <- utils::head(files, -1L)
    for (file in files) {
        page <- readBin(file, "raw", file.size(file))
        unlink(file)
        if (length(page) > 0L && !identical(page, device$shot) && !is_blank(page, device))
            display(list("image/png" = page))
        device$shot <- devices[[path]]$shot <<- NULL
        devices[[path]]$drawn <<- 0L
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

# Send a page that is still open, by drawing it once more.
page_shoot <- function(path) {
    device <- devices[[path]]
    drawn <- length(grDevices::recordPlot()[[1L]])
    if (drawn == 0L || drawn == device$drawn || !graphics::par("page")) return()
    shot <- page_draw(device, function(...) grDevices::dev.copy(grDevices::png, ...))
    if (is.null(shot)) return()
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

# A plot that cannot be delivered costs neither the cell nor the session.
attempt <- function(code) {
    tryCatch(code, error = function(e) {
        cat("a plot is lost: ", conditionMessage(e), "\n", sep = "", file = stderr())
    })
    invisible()
}

new_page <- function(...) {
    if (length(devices) && !drawing) suspendInterrupts(attempt(plots_send()))
}
