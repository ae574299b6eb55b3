/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The marker: turns the tag of a job's socket (SO_PRIORITY) into the lane's DSCP and queue
 * priority. */
#ifndef GRADLANE_LIB_MARK_H
#define GRADLANE_LIB_MARK_H

#include "common.h"
#include "count.h"
#include "dscp.h"
#include "socket.h"
#include "gradlane/abi/lane.h"

/* The settings; key 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gl_lane_config);
} gl_lane_config SEC(".maps");

/* What the marker saw, by lane. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GL_LANES);
	__type(key, __u32);
	__type(value, struct gl_lane_count);
} gl_lane_count SEC(".maps");

/* Lane of the untagged sockets of a job, by the id of the job's cgroup; where it is not the default
 * lane. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} gl_job_lane SEC(".maps");

/* The lane of a packet: its socket's tag decides, else its job, else the configured default. */
static __always_inline __u32 packet_lane(struct __sk_buff *skb, struct gl_socket *socket,
					 const struct gl_lane_config *config)
{
	__u32 tag = skb->priority;
	__u32 lane = tag < GL_TAGS ? config->lane_of_tag[tag & 7] : GL_LANES;

	if (lane < GL_LANES)
		return lane;
	if (socket->job_lane == GL_LANE_UNKNOWN) {
		__u64 job = bpf_skb_cgroup_id(skb);
		__u32 *of_job = bpf_map_lookup_elem(&gl_job_lane, &job);

		socket->job_lane = of_job ? (__u8)*of_job : config->default_lane;
	}
	return socket->job_lane & (GL_LANES - 1);
}

/* Headers that the marker may have to reach. */
#define HEADERS                                                                                    \
	(sizeof(struct ethhdr) + GL_VLAN_DEPTH * sizeof(struct vlan_hdr) + sizeof(struct ipv6hdr))

/* Writes the DSCP into the packet. Returns 1 if it was another one before, 0 if not, -1 where the
 * packet is no IP packet or is cut off.
 */
static __always_inline int write_dscp(void *data, void *data_end, __u8 dscp)
{
	struct gl_network_header header = {};
	void *network;

	if (gl_find_network_header(data, data_end, &header))
		return -1;
	network = data + header.offset;
	if (header.protocol == ETH_P_IP && network + sizeof(struct iphdr) <= data_end)
		return gl_set_dscp_ipv4(network, dscp);
	if (header.protocol == ETH_P_IPV6 && network + sizeof(struct ipv6hdr) <= data_end)
		return gl_set_dscp_ipv6(network, dscp);
	return -1;
}

static __always_inline int mark(struct __sk_buff *skb, __u8 dscp)
{
	int written = write_dscp((void *)(long)skb->data, (void *)(long)skb->data_end, dscp);

	if (written >= 0)
		return written;
	/* The headers may lie in fragments. */
	bpf_skb_pull_data(skb, skb->len < HEADERS ? skb->len : HEADERS);
	/* clang would merge both reads of the context into pointer arithmetic, which the verifier
	 * refuses. */
	barrier_var(skb);
	return write_dscp((void *)(long)skb->data, (void *)(long)skb->data_end, dscp);
}

/* Marks a packet on its way out if its socket is a job's; leaves all others untouched. */
static __always_inline void gl_mark_packet(struct __sk_buff *skb)
{
	struct gl_lane_config *config;
	struct gl_lane_count *count;
	struct gl_socket *socket = gl_job_socket(skb);
	__u32 key = 0;
	__u32 lane;
	int written = 0;

	if (!socket)
		return;
	config = bpf_map_lookup_elem(&gl_lane_config, &key);
	if (!config) {
		gl_count_up(GL_COUNT_NO_CONFIG);
		return;
	}
	lane = packet_lane(skb, socket, config);
	if (config->mark) {
		written = mark(skb, config->dscp[lane & (GL_LANES - 1)]);
		if (written < 0)
			gl_count_up(GL_COUNT_PARSE);
		else
			skb->priority = config->queue_priority[lane & (GL_LANES - 1)];
	}
	count = bpf_map_lookup_elem(&gl_lane_count, &lane);
	if (count) {
		count->packets += skb->gso_segs ? skb->gso_segs : 1;
		count->bytes += skb->wire_len;
		count->rewritten += written > 0 ? 1 : 0;
	}
}

#endif
