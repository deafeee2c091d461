# SPDX-License-Identifier: GPL-2.0-only
# Thin: every target is a script, which works without make too.

PYTHON ?= /usr/bin/python3

.PHONY: help bench check check-full tools kunit series series-check clean

help:
	@echo 'bench         before/after table of the series (scripts/bench)'
	@echo 'check         every test (scripts/check)'
	@echo 'check-full    every test, and what takes hours'
	@echo 'tools         the host programs, into build/bin'
	@echo 'kunit         the KUnit suites, under UML and in the guest'
	@echo 'series        apply patches/6.12 to a clean tree with git am'
	@echo 'series-check  each patch as a maintainer checks it'
	@echo 'clean         remove build/; results/ and the shared cache stay'

bench:
	@scripts/bench

check:
	@scripts/check

check-full:
	@scripts/check --full

tools:
	@scripts/setup bench
	@scripts/tools

kunit:
	@scripts/setup check
	@$(PYTHON) scripts/kunit.py

series:
	@scripts/setup bench
	@$(PYTHON) scripts/kernel.py series

series-check:
	@scripts/setup full
	@$(PYTHON) scripts/series-check --releases

clean:
	rm -rf build
