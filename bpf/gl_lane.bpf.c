// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The marker at egress of a host's uplink. */
#include "lib/mark.h"

SEC("tc")
int gl_mark(struct __sk_buff *skb)
{
	gl_mark_packet(skb);
	return TCX_NEXT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
