# SPDX-License-Identifier: MIT
#
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
    widget <- inherits(value, "htmlwidget")
    text <- if (widget) sprintf("<%s>", class(value)[[1L]]) else as.character(value)
    list("text/html" = html_page(value), "text/plain" = text)
}

is_html <- function(value) inherits(value, c("htmlwidget", "shiny.tag", "shiny.tag.list"))

print_widget <- function(x, ...) {
    display(html_data(x))
    invisible(x)
}
