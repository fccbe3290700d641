# SPDX-License-Identifier: MIT
#
# What a session begins with: its library, its options, the functions that are replaced.

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
system_watch("system")
system_watch("system2")

attach(list(sandbox_display = function(mime, data, metadata = list()) {
    display(structure(list(data), names = mime), metadata)
}), name = "tools:sandbox", warn.conflicts = FALSE)
unlockBinding(".Last.value", baseenv())
globalCallingHandlers(handlers)

start <- function() {
    ready <- list(language = json_string("r"), version = json_string(as.character(getRversion())))
    invisible(.Call(native$start, as.call(list(step)), json_object(ready)))
}
