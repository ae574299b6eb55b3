/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SCC's control law, both sides: pure functions of their arguments. No clock, no map, no kernel
 * type, and no absolute time: link rate, round-trip time, buffer and segment size go in. The BPF
 * programs and the tests compile this same file.
 */
#ifndef GRADLANE_LIB_LAW_H
#define GRADLANE_LIB_LAW_H

#include "gradlane/abi/scc.h"

/* Always inline: some of these are called under a spin lock, where the verifier of kernel 6.1
 * allows no function calls.
 */
#define GL_INLINE static inline __attribute__((always_inline))

#define GL_SECOND_US 1000000ULL

/* Fixed point of shares and trims. */
#define GL_ONE 1024U

/* Grants exceed the exact share by this much, so that rounding and gaps do not leave the link idle;
 * the queue that they build is what the senders' stretch takes away again. In 1/1024.
 */
#define GL_OVERCOMMIT 1075U

/* A sender counts as active for this many of its own packet gaps after its last packet. Fewer lose
 * senders that wait for a retransmission timeout, more leave the link idle after a sender has
 * finished.
 */
#define GL_IDLE_GAPS 4

/* And for this many if its last packet was pushed: it had nothing more to send then. */
#define GL_PUSHED_GAPS 1

/* Limits of the restart window, in quarters of a segment: one segment, and ten (RFC 6928). */
#define GL_RESTART_LEAST 4U
#define GL_RESTART_MOST 40U

/* Trim of the grants: at most four-fold. */
#define GL_TRIM_MOST (4 * GL_ONE)

GL_INLINE __u64 gl_min64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

GL_INLINE __u64 gl_max64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Rate in bytes per second to its 16-bit form: mantissa 11 bits, exponent 5 bits, unit 1024 B/s,
 * rounded down; the smallest grant is one unit.
 */
GL_INLINE __u16 gl_encode_rate(__u64 byte_s)
{
	__u64 mantissa = byte_s >> 10;
	__u32 exponent = 0;

	for (int i = 0; i < 31 && mantissa > 0x7ff; i++) {
		mantissa >>= 1;
		exponent++;
	}
	if (mantissa > 0x7ff)
		mantissa = 0x7ff;
	if (mantissa == 0)
		mantissa = 1;
	return (__u16)(exponent << 11 | mantissa);
}

GL_INLINE __u64 gl_decode_rate(__u16 rate)
{
	return (__u64)(rate & 0x7ff) << ((rate >> 11) + 10);
}

/* In proportion to the weights of the senders' lanes. */
GL_INLINE void gl_weighted_shares(const struct gl_scc_config *config, const __u32 active[GL_LANES],
				  __u64 rate, __u64 grant[GL_LANES])
{
	__u64 weights = 0;

	for (int lane = 0; lane < GL_LANES; lane++)
		weights += (__u64)config->weight[lane] * active[lane];
	for (int lane = 0; lane < GL_LANES; lane++) {
		__u64 total = weights + (active[lane] ? 0 : config->weight[lane]);

		grant[lane] = total ? rate * config->weight[lane] / total : rate;
	}
}

/* The most urgent active lane gets all but what the senders of the lanes below keep: their lane's
 * minimum share, and half of an equal share each, so that they hear of new grants soon enough to
 * use the link as soon as the urgent lane falls silent. At the ports the lanes are served in strict
 * order all the same.
 */
GL_INLINE void gl_strict_shares(const struct gl_scc_config *config, const __u32 active[GL_LANES],
				__u64 rate, __u64 grant[GL_LANES])
{
	__u32 all = 0;
	__u64 below = 0;

	for (int lane = 0; lane < GL_LANES; lane++)
		all += active[lane];
	for (int lane = GL_LANES - 1; lane >= 0; lane--) {
		__u32 senders = active[lane] ? active[lane] : 1;
		__u64 kept = gl_max64(rate / (all + (active[lane] ? 0 : 1)) / 2,
				      rate * config->minimum_share / GL_ONE / senders);
		__u32 above = 0;

		for (int other = 0; other < GL_LANES; other++)
			above += other < lane ? active[other] : 0;
		grant[lane] = above ? kept : (rate - below) / senders;
		below += active[lane] * kept;
	}
}

/* What each active sender of a lane may send, bytes per second, for all lanes; a lane without
 * senders is told what a first one would get.
 */
GL_INLINE void gl_shares(const struct gl_scc_config *config, const __u32 active[GL_LANES],
			 __u32 trim, __u64 grant[GL_LANES])
{
	__u64 link = config->payload_rate * GL_OVERCOMMIT / GL_ONE;
	__u64 rate = link * trim / GL_ONE;

	if (config->weighted)
		gl_weighted_shares(config, active, rate, grant);
	else
		gl_strict_shares(config, active, rate, grant);
	for (int lane = 0; lane < GL_LANES; lane++)
		grant[lane] = gl_min64(grant[lane], link);
}

/* For how long a sender with this grant counts as active after its last packet, in slots, if that
 * is so many of its gaps. The restart window is what it sends at once.
 */
GL_INLINE __u32 gl_idle_slots(__u64 grant, __u32 mss, __u32 restart_window, __u32 round_trip_us,
			      __u32 gaps)
{
	__u64 burst = (__u64)mss * restart_window / 4;
	__u64 gap_ns = grant ? burst * 1000000000ULL / grant : 0;
	__u64 slots = (gaps * gap_ns + 4000ULL * round_trip_us) / GL_SLOT_NS + 2;

	return (__u32)gl_min64(slots, GL_WHEEL - 1);
}

/* What each of the expected senders may send at once when it starts again: together half of the
 * buffer, in quarters of a segment.
 */
GL_INLINE __u8 gl_restart_window(__u32 buffer, __u32 mss, __u32 expected_senders)
{
	__u64 window = (__u64)buffer * 2 / mss / (expected_senders ? expected_senders : 1);

	return (__u8)gl_min64(gl_max64(window, GL_RESTART_LEAST), GL_RESTART_MOST);
}

/* The next trim after a control period in which arrived of the possible bytes came: counted senders
 * that do not use their grant must not leave the link idle. Below 7/10 of the link grants rise,
 * else they fall back.
 */
GL_INLINE __u32 gl_next_trim(__u32 trim, __u64 arrived, __u64 possible)
{
	if (arrived * 10 < possible * 7)
		trim += trim / 4;
	else
		trim -= trim / 8;
	return (__u32)gl_min64(gl_max64(trim, GL_ONE), GL_TRIM_MOST);
}

/* The sender's rate: the granted gap between bursts, stretched by the queueing delay beyond the
 * tolerance. A queue in front of the receiver or anywhere else on the path slows all its senders
 * alike, so the queue settles near a fixed share of the number of senders. The gap is doubled at
 * the most: on a busy host delays are no queues, and what a lasting queue needs beyond that the
 * loss brake does.
 */
GL_INLINE __u64 gl_stretched_rate(__u64 grant, __u32 burst_bytes, __u32 queue_us,
				  __u32 tolerance_us)
{
	__u64 excess_us = queue_us > tolerance_us ? queue_us - tolerance_us : 0;
	__u64 excess_bytes = gl_min64(grant * excess_us / GL_SECOND_US, burst_bytes);

	/* burst / (burst / grant + excess) */
	return grant * burst_bytes / (burst_bytes + excess_bytes);
}

/* The sender's window in segments: what the rate delivers in a round trip with some slack for late
 * acknowledgements, but never less than the restart window.
 */
GL_INLINE __u32 gl_window(__u64 rate, __u32 mss, __u32 round_trip_us, __u32 slack_us,
			  __u8 restart_window)
{
	__u64 bytes = rate * 5 / 4 * (round_trip_us + slack_us) / GL_SECOND_US;
	__u64 segments = (bytes + mss - 1) / mss;

	return (__u32)gl_max64(segments, restart_window / 4);
}

#endif
