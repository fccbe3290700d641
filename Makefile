# SPDX-License-Identifier: MIT
# The verbs a person types. All work is done by meson, ninja, pytest and the scripts of tools/.

.DEFAULT_GOAL := all
.PHONY: all ui ui-dev run check test asan ubsan tsan torture fuzz lint fmt cover bench soak \
	screenshots man dist install clean distclean

T ?=
SECONDS ?= 60
PREFIX ?= /usr/local

build/build.ninja:
	tools/setup build
	meson setup --prefix=$(PREFIX) build

all: build/build.ninja ui
	ninja -C build

# The page, which the next build puts into the program; nothing happens when it is as its sources.
ui:
	tools/setup ui
	tools/build-ui

# Vite on port 5173, which asks an `api` on 8000 (sandbox-agent api dev).
ui-dev:
	tools/setup ui
	cd ui && "$$(../tools/build-ui --node)" node_modules/vite/bin/vite.js

# On a fresh machine: install, build, make the Python image, do the main job on real input.
run:
	tools/setup build
	$(MAKE) all
	tools/first-run

# Everything: installs what is needed, builds, makes the images, runs every test.
test:
	tools/setup build ui test
	tools/run-tests checks tools ui unit images integration asan tsan torture

# About a minute: what to run before each commit.
check:
	tools/setup build ui test
	tools/run-tests checks tools ui unit

asan ubsan tsan:
	tools/setup build test
	tools/run-tests $@

torture:
	tools/setup build test
	tools/run-tests torture-full

# make fuzz T=frame SECONDS=60
fuzz:
	tools/fuzz "$(T)" $(SECONDS)

lint:
	tools/setup build lint
	tools/lint

fmt:
	tools/setup lint
	clang-format-19 -i $$(git ls-files -co --exclude-standard -- '*.c' '*.h')

cover:
	tools/setup build test cover
	tools/cover

bench: all
	tools/setup test oracle bench
	tests/bench/bench.py
	tests/bench/api_bench.py

soak: all
	tools/setup test
	tests/bench/soak.py

# docs/ui-*.png. Look at them before they are committed.
screenshots: all
	tools/setup test browser
	UI_PICTURES=$(CURDIR)/docs build/venv/bin/pytest -q \
		tests/integration/clients/browser/test_ui_pictures.py

man: all
	tools/gen-man build/sandbox-agent build/man

dist: build/build.ninja
	meson dist -C build --no-tests --allow-dirty

# A PREFIX that is given here counts, also when the tree was configured with another.
install: all
ifneq ($(origin PREFIX),file)
	meson configure -Dprefix=$(PREFIX) build
	ninja -C build
endif
	meson install -C build --no-rebuild

clean:
	if [ -e build/build.ninja ]; then ninja -C build clean; fi

distclean:
	rm -rf build build-* dist
