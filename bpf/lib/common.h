/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every BPF object includes first, and the kernel constants that BTF does not carry. */
#ifndef GRADLANE_LIB_COMMON_H
#define GRADLANE_LIB_COMMON_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8

/* Verdict of every tc program: go on with the next program, so that others' still run. */
#define TCX_NEXT -1

#define SOL_SOCKET 1
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_SAVE_SYN 27

#define ENOMSG 42

#define AF_INET 2
#define AF_INET6 10

#endif
