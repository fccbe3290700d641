# SPDX-License-Identifier: MIT
# Exits 0 if every NAME or NAME@VERSION of the arguments loads, in that version.
.libPaths(c(Sys.getenv("R_LIBS_USER"), .libPaths()))
problem <- function(argument) {
  parts <- strsplit(argument, "@", fixed = TRUE)[[1]]
  if (!suppressWarnings(requireNamespace(parts[[1]], quietly = TRUE)))
    return(paste(parts[[1]], "does not load"))
  found <- as.character(utils::packageVersion(parts[[1]]))
  if (length(parts) > 1 && utils::compareVersion(found, parts[[2]]) != 0)
    return(sprintf("%s is %s, not %s", parts[[1]], found, parts[[2]]))
  NULL
}
problems <- unlist(lapply(commandArgs(trailingOnly = TRUE), problem))
if (length(problems) > 0) {
  writeLines(problems, stderr())
  quit(status = 1)
}
