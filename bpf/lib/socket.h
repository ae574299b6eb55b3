/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Socket storage: what marks a socket as a job's, shared by the socket policy, the marker and SCC.
 */
#ifndef GRADLANE_LIB_SOCKET_H
#define GRADLANE_LIB_SOCKET_H

#include "common.h"
#include "gradlane/abi/scc.h"

/* One map per kernel, pinned below GL_PIN_KERNEL: SCC is registered once for all instances. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct gl_socket);
} gl_socket SEC(".maps");

/* The storage of a packet's socket; NULL unless it is a job's, for the socket policy gives it to
 * those alone. */
static __always_inline struct gl_socket *gl_job_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	if (!sk)
		return NULL;
	sk = bpf_sk_fullsock(sk);
	return sk ? bpf_sk_storage_get(&gl_socket, sk, 0, 0) : NULL;
}

#endif
