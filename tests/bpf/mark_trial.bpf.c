// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The marker behind a program that first makes the test's socket a job's: a test run has a socket of its own.
 */
#include "lib/mark.h"

SEC("tc")
int gl_trial(struct __sk_buff* skb) {
  struct gl_socket* socket;
  struct bpf_sock* sk = skb->sk;

  if (!sk) return TCX_NEXT;
  sk = bpf_sk_fullsock(sk);
  if (!sk) return TCX_NEXT;
  socket = bpf_sk_storage_get(&gl_socket, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
  if (!socket) return TCX_NEXT;
  socket->job_lane = GL_LANE_UNKNOWN;
  gl_mark_packet(skb);
  return TCX_NEXT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
