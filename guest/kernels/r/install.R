# SPDX-License-Identifier: MIT
# Installs each NAME or NAME@VERSION of the arguments into the user library. install.packages()
# warns where other installers fail, so warnings are errors here; verify.R has the last word.
arguments <- commandArgs(trailingOnly = TRUE)
# Without a setting, the address that R itself holds for its packages.
repository <- Sys.getenv("SANDBOX_CRAN", tools:::CRAN_baseurl_for_web_area())
library_dir <- Sys.getenv("R_LIBS_USER")
dir.create(library_dir, recursive = TRUE, showWarnings = FALSE)
.libPaths(c(library_dir, .libPaths()))
options(repos = c(CRAN = repository), warn = 2, timeout = 300, Ncpus = 2L)

parts <- strsplit(arguments, "@", fixed = TRUE)
names <- vapply(parts, `[[`, "", 1)
versions <- vapply(parts, function(p) if (length(p) > 1) p[[2]] else "", "")

newest <- names[versions == ""]
if (length(newest) > 0) {
  available <- rownames(available.packages())
  absent <- setdiff(newest, available)
  if (length(absent) > 0)
    stop("not in the repository: ", paste(absent, collapse = ", "), call. = FALSE)
  install.packages(newest, lib = library_dir, quiet = FALSE)
}
for (i in which(versions != ""))
  remotes::install_version(names[[i]], versions[[i]], lib = library_dir, repos = repository,
                           upgrade = "never")
