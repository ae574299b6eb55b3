// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The socket policy and the receiver's side of SCC, at the cgroup of an instance's jobs. */
#include "lib/policy.h"

/* The one sockops program of the cgroup: it dispatches to all that has to do with sockets. */
SEC("sockops")
int gl_policy(struct bpf_sock_ops *ops)
{
	gl_socket_event(ops);
	return 1;
}

/* Sees what arrives for the jobs' sockets; always lets it pass. */
SEC("cgroup_skb/ingress")
int gl_arrive(struct __sk_buff *skb)
{
	gl_count_sender(skb, GL_ARRIVING);
	return 1;
}

/* Sees what the jobs' sockets send; always lets it pass. */
SEC("cgroup_skb/egress")
int gl_leave(struct __sk_buff *skb)
{
	gl_count_sender(skb, GL_LEAVING);
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
