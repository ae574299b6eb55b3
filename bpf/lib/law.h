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

/* Limits of gl_overcommit(), in 1/1024. */
#define GL_OVERCOMMIT_LEAST 1044U
#define GL_OVERCOMMIT_MOST 1280U

/* A sender counts as active for this many of its own packet gaps after its last packet. Fewer lose
 * senders that wait for a retransmission timeout, more leave the link idle after a sender has
 * finished.
 */
#define GL_IDLE_GAPS 4

/* And for this many if it had nothing more to send behind its last packet. */
#define GL_PUSHED_GAPS 1

/* A flow that is behind the others of its burst is helped as if by so many segments at the most:
 * more would let many of them overload the link.
 */
#define GL_CATCH_UP_MOST 1U

/* A flow that is more segments than that behind the others of its burst had nothing to send. */
#define GL_BEHIND_MOST 8U

/* When nobody joined a burst for so many slots, everybody is there. */
#define GL_JOIN_SLOTS 3U

/* Limits of the restart window, in quarters of a segment: ten segments are RFC 6928's; less than
 * one cannot be sent, but says that there are too many senders for one segment of each.
 */
#define GL_RESTART_LEAST 1U
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

/* By how much grants exceed the exact share, in 1/1024, so that late timers and rounding do not
 * leave the link idle. The queue that grows from it stretches the senders' gaps (below): N senders
 * with an overcommitment of 1 + x settle where the queue is x * N segments beyond the tolerance.
 * That is to be a quarter of the buffer that a lane can have: of L lanes that want all they can
 * get, dynamic thresholds give 1 / (L + 1) to each.
 */
GL_INLINE __u32 gl_overcommit(__u32 buffer, __u32 mss, __u32 senders, __u32 lanes)
{
	__u32 own = lanes > 1 ? buffer / (lanes + 1) : buffer;
	__u64 extra = (__u64)own / 4 * GL_ONE / mss / (senders ? senders : 1);

	return (__u32)gl_min64(gl_max64(GL_ONE + extra, GL_OVERCOMMIT_LEAST), GL_OVERCOMMIT_MOST);
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
 * senders is told what a first one would get. If more senders are expected than are active, their
 * shares are kept free.
 */
GL_INLINE void gl_shares(const struct gl_scc_config *config, const __u32 active[GL_LANES],
			 __u32 expected, __u32 mss, __u32 trim, __u64 grant[GL_LANES])
{
	__u32 all = active[0] + active[1] + active[2] + active[3];
	__u32 lanes = !!active[0] + !!active[1] + !!active[2] + !!active[3];
	__u32 senders = all > expected ? all : expected;
	__u64 link =
		config->payload_rate * gl_overcommit(config->buffer, mss, senders, lanes) / GL_ONE;
	__u64 rate = link * trim / GL_ONE;

	if (all && all < senders)
		rate = rate * all / senders;

	if (config->weighted)
		gl_weighted_shares(config, active, rate, grant);
	else
		gl_strict_shares(config, active, rate, grant);
	for (int lane = 0; lane < GL_LANES; lane++)
		grant[lane] = gl_min64(grant[lane], link);
}

/* A sender's own grant: those that have fallen behind the others of their burst, by losses and
 * chance, get more, so that all end together and none is left to send alone: an eighth per
 * segment, for GL_CATCH_UP_MOST at the most.
 */
GL_INLINE __u64 gl_own_share(__u64 grant, __u64 progress, __u64 mean_progress, __u32 mss)
{
	__u64 behind = mean_progress > progress ? mean_progress - progress : 0;

	return grant + grant * gl_min64(behind, GL_CATCH_UP_MOST * mss) / (8 * mss);
}

/* Segments that are sent at once under a restart window. */
GL_INLINE __u32 gl_restart_segments(__u32 restart_window)
{
	return restart_window >= 8 ? restart_window / 4 : 1;
}

/* Whether the first segments of all senders overfill the buffer: the window is for half of it. */
GL_INLINE int gl_is_crowded(__u32 restart_window)
{
	return restart_window < 2;
}

/* For how long a sender with this grant counts as active after its last packet, in slots, if that
 * is so many of its gaps. The restart window is what it sends at once.
 */
GL_INLINE __u32 gl_idle_slots(__u64 grant, __u32 mss, __u32 restart_window, __u32 round_trip_us,
			      __u32 gaps)
{
	__u64 burst = (__u64)mss * gl_max64(restart_window, 4) / 4;
	__u64 gap_ns = grant ? burst * 1000000000ULL / grant : 0;
	__u64 slots = (gaps * gap_ns + 4000ULL * round_trip_us) / GL_SLOT_NS + 2;

	return (__u32)gl_min64(slots, GL_WHEEL - 1);
}

/* Between two segments of a sender, if so many share the link. */
GL_INLINE __u64 gl_equal_gap_ns(__u64 payload_rate, __u32 mss, __u32 senders)
{
	return 1000000000ULL * senders * mss / payload_rate;
}

/* A burst begins when somebody sends after silence. While others join, the shares of all senders
 * that are expected are kept free, for one and a half of their gaps at most. Else the first
 * senders, who hear of the later ones only with their next packets, would overload the link while
 * their number grows. Returns whether that holds so many slots after the begin and after the last
 * one joined.
 */
GL_INLINE int gl_is_beginning(__u64 payload_rate, __u32 mss, __u32 expected, __u32 since_begin,
			      __u32 since_join)
{
	__u64 gap_ns = gl_equal_gap_ns(payload_rate, mss, expected);

	return since_join <= GL_JOIN_SLOTS &&
	       since_begin <= gl_max64(gap_ns * 3 / 2 / GL_SLOT_NS, GL_JOIN_SLOTS);
}

/* Whether a flow that sends for the first time so many slots after the begin of a burst takes part
 * from its begin: its first segment may have been lost, and came again after a timeout.
 */
GL_INLINE int gl_may_catch_up(__u64 payload_rate, __u32 mss, __u32 expected, __u32 floor_us,
			      __u32 since_begin)
{
	__u64 gap_ns = gl_equal_gap_ns(payload_rate, mss, expected);

	return since_begin <= (4 * gap_ns + 2000ULL * floor_us) / GL_SLOT_NS;
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

/* The rate behind the last full segment of a block, whose rest is a shorter one: a whole gap would
 * leave the link idle in the last round of all senders, which is for short segments. Full ones of
 * other senders still come meanwhile, so the short one comes earlier by no more than what lets half
 * of the buffer grow: the tolerance is a quarter of it, in time.
 */
GL_INLINE __u64 gl_closing_rate(__u64 rate, __u32 mss, __u32 rest, __u32 tolerance_us)
{
	__u64 gap_ns = rate ? 1000000000ULL * mss / rate : 0;
	__u64 earlier_ns;

	if (!rest || rest >= mss)
		return rate;
	earlier_ns = gl_min64(gap_ns * (mss - rest) / mss, 2000ULL * tolerance_us * mss / rest);
	return gap_ns > earlier_ns ? rate * gap_ns / (gap_ns - earlier_ns) : rate;
}

/* The sender's window in segments: what the rate delivers in a round trip with some slack for late
 * acknowledgements, but never less than the restart window.
 */
GL_INLINE __u32 gl_window(__u64 rate, __u32 mss, __u32 round_trip_us, __u32 slack_us,
			  __u8 restart_window)
{
	__u64 bytes = rate * 5 / 4 * (round_trip_us + slack_us) / GL_SECOND_US;
	__u64 segments = (bytes + mss - 1) / mss;

	return (__u32)gl_max64(segments, gl_restart_segments(restart_window));
}

#endif
