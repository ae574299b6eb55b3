/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all features share: the fixed-width types on both sides, and where things are pinned.
 * The headers of this folder are the only ones that kernel and user space both include: plain
 * structs and enums, a version each. A feature's version is part of its pin path
 * (INSTANCE/FEATURE-VERSION), so that changing one feature leaves the others' state alone.
 */
#ifndef GRADLANE_ABI_CORE_H
#define GRADLANE_ABI_CORE_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#ifdef __cplusplus
#define GL_STATIC_ASSERT static_assert
#else
#define GL_STATIC_ASSERT _Static_assert
#endif

/* Root of all pins, below the BPF file system. */
#define GL_PIN_ROOT "/sys/fs/bpf/gradlane"
/* Folder below it for what exists once per kernel: the congestion control and the socket storage.
 */
#define GL_PIN_KERNEL "kernel"

#endif
