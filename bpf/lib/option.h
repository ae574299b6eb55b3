/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SCC's TCP option, in sockops callbacks. Options are never put on data: what is reserved there
 * would lower the segment size, and packets with differing options do not merge at the receiver
 * (tcp_gro_receive).
 */
#ifndef GRADLANE_LIB_OPTION_H
#define GRADLANE_LIB_OPTION_H

#include "common.h"
#include "law.h"

#define GL_TCP_FIN 0x01
#define GL_TCP_SYN 0x02
#define GL_TCP_RST 0x04
#define GL_TCP_PSH 0x08

/* Bits of the SYN's capability option and of grants share kind and identifier; the length tells
 * them apart. */
struct gl_capable_option {
	__u8 kind;
	__u8 length;
	__u16 id;
};

/* In HDR_OPT_LEN_CB: room for the option on SYN, SYN-ACK and pure acknowledgements. */
static __always_inline void gl_reserve_option(struct bpf_sock_ops *ops)
{
	__u32 flags = ops->skb_tcp_flags;

	/* The kernel computes the segment size: nothing is reserved on data. */
	if (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
		return;
	if (flags & GL_TCP_SYN) {
		/* A SYN that got lost may have been dropped for its option: the next goes without.
		 */
		if (!ops->total_retrans)
			bpf_reserve_hdr_opt(ops, GL_OPTION_CAPABLE_LENGTH, 0);
		return;
	}
	if (ops->skb_len || flags & (GL_TCP_FIN | GL_TCP_RST))
		return;
	bpf_reserve_hdr_opt(ops, GL_OPTION_GRANT_LENGTH, 0);
}

static __always_inline void gl_write_capable(struct bpf_sock_ops *ops)
{
	struct gl_capable_option option = {
		.kind = GL_OPTION_KIND,
		.length = GL_OPTION_CAPABLE_LENGTH,
		.id = bpf_htons(GL_OPTION_ID),
	};

	bpf_store_hdr_opt(ops, &option, sizeof(option), 0);
}

/* Returns 0, or a negative errno where there was no room. */
static __always_inline int gl_write_grant(struct bpf_sock_ops *ops, __u64 grant,
					  __u8 restart_window)
{
	struct gl_grant_option option = {
		.kind = GL_OPTION_KIND,
		.length = GL_OPTION_GRANT_LENGTH,
		.id = bpf_htons(GL_OPTION_ID),
		.rate = bpf_htons(gl_encode_rate(grant)),
		.restart_window = restart_window,
		.version = GL_SCC_VERSION,
	};

	return (int)bpf_store_hdr_opt(ops, &option, sizeof(option), 0);
}

/* Returns 0 with a valid grant, 1 if the packet has none, -1 if it has one that must not be used.
 */
static __always_inline int gl_read_grant(struct bpf_sock_ops *ops, struct gl_grant_option *option)
{
	long length;

	/* Searches for kind and identifier: a length of 4 says that two bytes of identifier follow.
	 */
	option->kind = GL_OPTION_KIND;
	option->length = 4;
	option->id = bpf_htons(GL_OPTION_ID);
	length = bpf_load_hdr_opt(ops, option, sizeof(*option), 0);
	if (length == GL_OPTION_CAPABLE_LENGTH || length == -ENOMSG)
		return 1;
	if (length != GL_OPTION_GRANT_LENGTH || option->version != GL_SCC_VERSION ||
	    !option->rate || option->restart_window < GL_RESTART_LEAST ||
	    option->restart_window > GL_RESTART_MOST)
		return -1;
	return 0;
}

/* Whether the SYN (at the passive side) or SYN-ACK (at the active one) carried the capability. */
static __always_inline bool gl_peer_is_capable(struct bpf_sock_ops *ops, bool passive)
{
	struct gl_capable_option option = {
		.kind = GL_OPTION_KIND,
		.length = 4,
		.id = bpf_htons(GL_OPTION_ID),
	};

	return bpf_load_hdr_opt(ops, &option, sizeof(option),
				passive ? BPF_LOAD_HDR_OPT_TCP_SYN : 0) == GL_OPTION_CAPABLE_LENGTH;
}

/* What the count of senders wants to know of a packet. */
struct gl_packet {
	__u32 payload; /* bytes of TCP payload */
	__u8 dscp;
	bool pushed; /* the sender had nothing more to send (PSH) */
};

/* Reads it at a cgroup's ingress or egress, where data starts at the network header.
 * Returns 0, or -1 where it is no TCP or is cut off. IPv6 extension headers are not followed: such
 * packets do not count.
 */
static __always_inline int gl_read_packet(struct __sk_buff *skb, struct gl_packet *packet)
{
	__u8 first[20];
	__u8 offset_and_flags[2];
	__u32 header;
	__u32 tcp;

	if (bpf_skb_load_bytes_relative(skb, 0, first, 20, BPF_HDR_START_NET))
		return -1;
	if (first[0] >> 4 == 4) {
		header = (first[0] & 15) * 4;
		if (first[9] != IPPROTO_TCP)
			return -1;
		packet->dscp = first[1] >> 2;
	} else if (first[0] >> 4 == 6) {
		header = 40;
		if (first[6] != IPPROTO_TCP)
			return -1;
		packet->dscp = (__u8)((first[0] & 15) << 2 | first[1] >> 6);
	} else {
		return -1;
	}
	if (bpf_skb_load_bytes_relative(skb, header + 12, offset_and_flags, 2, BPF_HDR_START_NET))
		return -1;
	tcp = (offset_and_flags[0] >> 4) * 4;
	if (skb->len < header + tcp)
		return -1;
	packet->payload = skb->len - header - tcp;
	packet->pushed = offset_and_flags[1] & GL_TCP_PSH;
	return 0;
}

#endif
