/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading and writing the six DSCP bits of a packet; the two ECN bits are never touched. */
#ifndef GRADLANE_LIB_DSCP_H
#define GRADLANE_LIB_DSCP_H

#include "common.h"

/* VLAN tags that are followed in the packet itself: QinQ. */
#define GL_VLAN_DEPTH 2

/* Where a packet's network header starts. */
struct gl_network_header {
	__u16 protocol; /* ETH_P_IP or ETH_P_IPV6, host byte order; 0: neither */
	__u16 offset;	/* from the start of the link-layer header */
};

/* Finds the network header behind an Ethernet header and up to GL_VLAN_DEPTH tags. Returns 0, or -1
 * where the packet ends too early.
 */
static __always_inline int gl_find_network_header(void *data, void *data_end,
						  struct gl_network_header *header)
{
	struct ethhdr *ethernet = data;
	__u16 protocol;
	__u16 offset = sizeof(*ethernet);

	if ((void *)(ethernet + 1) > data_end)
		return -1;
	protocol = bpf_ntohs(ethernet->h_proto);
#pragma unroll
	for (int depth = 0; depth < GL_VLAN_DEPTH; depth++) {
		struct vlan_hdr *tag = data + offset;

		if (protocol != ETH_P_8021Q && protocol != ETH_P_8021AD)
			break;
		if ((void *)(tag + 1) > data_end)
			return -1;
		protocol = bpf_ntohs(tag->h_vlan_encapsulated_proto);
		offset += sizeof(*tag);
	}
	header->protocol = protocol == ETH_P_IP || protocol == ETH_P_IPV6 ? protocol : 0;
	header->offset = offset;
	return 0;
}

/* Sets the DSCP of an IPv4 header and mends its checksum (RFC 1624, equation 3). Returns 1 if the
 * header had another one, else 0 and nothing was written.
 */
static __always_inline int gl_set_dscp_ipv4(struct iphdr *ip, __u8 dscp)
{
	__u8 tos = (__u8)(dscp << 2 | (ip->tos & 3));
	__u32 sum;

	if (tos == ip->tos)
		return 0;
	/* Version, header length and TOS are one 16-bit word; only its low byte changes. */
	sum = (__u16)~bpf_ntohs(ip->check);
	sum += (__u16) ~(__u16)ip->tos;
	sum += tos;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = bpf_htons((__u16)~sum);
	ip->tos = tos;
	return 1;
}

/* The same for an IPv6 header, which has no checksum. The traffic class lies across the first two
 * bytes. */
static __always_inline int gl_set_dscp_ipv6(void *header, __u8 dscp)
{
	__u8 *byte = header;
	__u8 traffic_class = (__u8)(byte[0] << 4 | byte[1] >> 4);
	__u8 wanted = (__u8)(dscp << 2 | (traffic_class & 3));

	if (wanted == traffic_class)
		return 0;
	byte[0] = (__u8)((byte[0] & 0xf0) | wanted >> 4);
	byte[1] = (__u8)((byte[1] & 0x0f) | wanted << 4);
	return 1;
}

#endif
