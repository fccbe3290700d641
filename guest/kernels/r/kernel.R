# SPDX-License-Identifier: MIT
#
# The R kernel: runs cells for guest/init, as docs/PROTOCOL.md, section 2, says.
#
#   R --no-echo --no-restore --no-save --no-init-file --no-environ --file=<here>/kernel.R
#
# (no .Rprofile and no .Renviron: those of the work directory are written by the code that runs.)
# Base R can neither wait on an inherited socket, nor ignore SIGINT between cells, nor evaluate an
# expression without a frame of its own on the stack, which would then show in each warning and
# traceback. So sandbox_kernel.so, beside this file, sits in R's own loop: whenever R wants a line,
# it evaluates what was staged, at top level, and calls `step`. A step is short and not interrupted.
# It looks at what came of the staged expression, sends its plots and its value, and stages the next
# one; R prints the warnings between two steps.

# R's loop parses its script anew at each line end, so this one is short and reads the others. They
# live below base, where nothing that the code defines or attaches is seen.

local({
    here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
    routines <- getDLLRegisteredRoutines(dyn.load(file.path(here, "sandbox_kernel.so")))$.Call
    kernel <- new.env(parent = baseenv())
    kernel$native <- lapply(routines, function(routine) routine$address)
    names(kernel$native) <- sub("sandbox_", "", names(routines), fixed = TRUE)
    for (name in c("wire", "plots", "html", "input", "failure", "cell", "start"))
        eval(parse(file.path(here, paste0(name, ".R")), keep.source = FALSE), kernel)
    kernel$start()
})
