# SPDX-License-Identifier: Apache-2.0
# The only entry point: `make help` lists the targets. Quiet by default; V=1 shows the commands.

SHELL := /bin/bash
BUILD := build/cmake
Q := $(if $(V),,@)
NEEDS := $(Q)$(if $(filter no,$(SETUP)),:,scripts/setup)

.DEFAULT_GOAL := all
.PHONY: all help setup demo check check-vm check-debian13 lint fuzz clean
.NOTPARALLEL:

all: ## Build everything (the default); installs the Debian packages that the build needs
	$(NEEDS) build
	$(Q)scripts/build $(BUILD) $(if $(V),--verbose)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-zA-Z0-9%-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install all Debian packages that any target needs (SETUP=no with another target: install nothing)
	$(NEEDS) all

demo: ## Train over lanes on a small network of namespaces, against what there is today; result in build/demo
	$(NEEDS) build demo
	$(Q)$(MAKE) --no-print-directory all SETUP=no
	$(Q)scripts/demo/run

check: ## Run all tests (root); STEPS="unit netns" runs only those steps
	$(NEEDS) build demo test vm
	$(Q)$(MAKE) --no-print-directory all SETUP=no
	$(Q)scripts/check $(STEPS)

check-vm: ## Run the guest tests on other kernels: KERNELS="6.1 6.12 newest"
	$(NEEDS) build test vm
	$(Q)$(MAKE) --no-print-directory all SETUP=no
	$(Q)scripts/check $(addprefix vm-,$(or $(KERNELS),6.1 6.12 newest))

check-debian13: ## Build and run the unit tests on a fresh Debian 13 (a debootstrap folder in build/, removed after)
	$(NEEDS) debian13
	$(Q)scripts/check-debian13

bench-%: ## Run the benchmark % (QUICK=1: under 2 minutes); result in build/bench
	$(Q)scripts/bench $* $(if $(QUICK),--quick)

lint: ## Check format, style, licences, scripts and man pages
	$(NEEDS) build lint
	$(Q)$(MAKE) --no-print-directory all SETUP=no
	$(Q)scripts/lint

fuzz: ## Fuzz every parser for SECONDS=20 each
	$(NEEDS) build fuzz
	$(Q)scripts/fuzz $(or $(SECONDS),20)

clean: ## Remove all that was built
	$(Q)rm -rf build
