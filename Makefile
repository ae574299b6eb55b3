# SPDX-License-Identifier: Apache-2.0
# The only entry point: `make help` lists the targets. Quiet by default, V=1 shows the commands.

BUILD := build/cmake
NINJA := ninja $(if $(V),-v,--quiet) -C $(BUILD)
Q := $(if $(V),,@)

.PHONY: all help setup demo check lint clean

all: $(BUILD)/build.ninja
	$(Q)$(NINJA)

$(BUILD)/build.ninja:
	$(Q)cmake -S . -B $(BUILD) -G Ninja $(if $(V),,--log-level=WARNING) > $(if $(V),/dev/stdout,/dev/null)
