/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The count of active senders, to this host and from it: a wheel of time slots, advanced by the
 * packets themselves. No timer and no sweep, so nothing can be left counted when a sender, a
 * connection or a daemon dies.
 */
#ifndef GRADLANE_LIB_ACTIVITY_H
#define GRADLANE_LIB_ACTIVITY_H

#include "common.h"
#include "law.h"

/* Payload of a full segment on an Ethernet of MTU 1500 with timestamps; the law wants the order of
 * it. */
#define GL_SEGMENT 1448U

/* The trim looks at the arrival rate this often. */
#define GL_TRIM_PERIOD_NS 4096000ULL

/* A period in which peaks are noted ends with the next burst, or after so many slots (262 ms). */
#define GL_PEAK_SLOTS 512U

/* Key: enum gl_direction. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GL_DIRECTIONS);
	__type(key, __u32);
	__type(value, struct gl_activity);
} gl_activity SEC(".maps");

/* Most senders that a burst is expected to have. */
static __always_inline __u32 gl_expected_senders(const struct gl_activity *activity)
{
	__u32 peak = activity->peak;

	if (activity->last_peak[0] > peak)
		peak = activity->last_peak[0];
	if (activity->last_peak[1] > peak)
		peak = activity->last_peak[1];
	return peak ? peak : 1;
}

static __always_inline void gl_begin_period(struct gl_activity *activity, __u32 now)
{
	activity->last_peak[1] = activity->last_peak[0];
	activity->last_peak[0] = activity->peak;
	activity->peak = 0;
	activity->peak_slot = now;
}

/* Somebody sends after silence. Under the lock. */
static __always_inline void gl_begin_burst(struct gl_activity *activity, __u32 now)
{
	gl_begin_period(activity, now);
	activity->burst++;
	for (int lane = 0; lane < GL_LANES; lane++) {
		activity->burst_flows[lane] = 0;
		activity->burst_bytes[lane] = 0;
	}
	activity->begin_slot = now;
	/* Jobs repeat themselves: this burst will be as the last one. */
	activity->expected = activity->last_peak[0];
}

static __always_inline __u32 gl_all_active(const struct gl_activity *activity)
{
	return activity->active[0] + activity->active[1] + activity->active[2] +
	       activity->active[3];
}

/* Grants that follow from the counts. Under the lock. */
static __always_inline void gl_share_out(struct gl_activity *activity,
					 const struct gl_scc_config *config)
{
	__u32 all = gl_all_active(activity);
	__u32 expected = 0;

	if (all > activity->peak)
		activity->peak = all;
	if (gl_is_beginning(config->payload_rate, GL_SEGMENT, activity->expected,
			    activity->slot - activity->begin_slot,
			    activity->slot - activity->join_slot))
		expected = activity->expected;
	gl_shares(config, activity->active, expected, GL_SEGMENT, activity->trim, activity->grant);
}

/* All ones if a < b, otherwise 0; both below 2^31. Without a branch: a loop of branches makes the
 * verifier follow every way through it, which that of kernel 6.1 does not finish.
 */
static __always_inline __u32 gl_below(__u32 a, __u32 b)
{
	__s32 difference = (__s32)(a - b);

	barrier_var(difference);
	return (__u32)(difference >> 31);
}

/* Turns the wheel to slot now and counts anew who is active in each lane. Under the lock. */
static __always_inline void gl_turn_wheel(struct gl_activity *activity, __u32 now,
					  const struct gl_scc_config *config)
{
	__u32 passed = now - activity->slot;
	__u8 window = gl_restart_window(config->buffer, GL_SEGMENT, gl_expected_senders(activity));

	if (passed == 1) {
		for (int lane = 0; lane < GL_LANES; lane++)
			activity->count[lane][now & (GL_WHEEL - 1)] = 0;
	} else {
		/* After a pause. */
		if (passed > GL_WHEEL)
			passed = GL_WHEEL;
		for (__u32 i = 0; i < GL_WHEEL; i++) {
			__u32 index = (now - i) & (GL_WHEEL - 1);
			__u32 keep = gl_below(passed, i + 1);

			for (int lane = 0; lane < GL_LANES; lane++)
				activity->count[lane][index] &= keep;
		}
	}
	activity->slot = now;
	for (int lane = 0; lane < GL_LANES; lane++) {
		__u32 idle_slots, active = 0;

		/* Changes here alone, together with the count that it stands for. */
		activity->idle_slots[lane] =
			gl_idle_slots(activity->grant[lane], GL_SEGMENT, window,
				      config->round_trip_us, GL_IDLE_GAPS);
		activity->pushed_slots[lane] =
			gl_idle_slots(activity->grant[lane], GL_SEGMENT, window,
				      config->round_trip_us, GL_PUSHED_GAPS);
		idle_slots = activity->idle_slots[lane];
		for (__u32 i = 0; i < GL_WHEEL; i++) {
			active += activity->count[lane][(now - i) & (GL_WHEEL - 1)] &
				  gl_below(i, idle_slots + 1);
		}
		activity->active[lane] = active;
	}
	if (now - activity->peak_slot >= GL_PEAK_SLOTS && gl_all_active(activity))
		gl_begin_period(activity, now);
}

/* What the flows of a lane have sent on average in this burst. */
static __always_inline __u64 gl_mean_progress(const struct gl_activity *activity, __u32 lane)
{
	__u32 flows;

	lane &= GL_LANES - 1;
	flows = activity->burst_flows[lane];
	return flows ? activity->burst_bytes[lane] / flows : 0;
}

/* Adds to a flow's progress. Under the lock. */
static __always_inline void gl_progress(struct gl_activity *activity, struct gl_place *place,
					__u32 lane, __u32 bytes, const struct gl_scc_config *config)
{
	__u64 mean, least;

	lane &= GL_LANES - 1;
	mean = gl_mean_progress(activity, lane);
	if (place->burst != activity->burst || place->burst_lane != lane) {
		place->burst = activity->burst;
		place->burst_lane = lane;
		/* Those who come later do not catch up. */
		place->bytes =
			gl_may_catch_up(config->payload_rate, GL_SEGMENT, activity->expected,
					config->floor_us, activity->slot - activity->begin_slot)
				? 0
				: mean;
		activity->burst_flows[lane]++;
		activity->burst_bytes[lane] += place->bytes;
	}
	place->bytes += bytes;
	activity->burst_bytes[lane] += bytes;
	/* Nor does one that had nothing to send. */
	least = mean > GL_BEHIND_MOST * GL_SEGMENT ? mean - GL_BEHIND_MOST * GL_SEGMENT : 0;
	if (place->bytes < least) {
		activity->burst_bytes[lane] += least - place->bytes;
		place->bytes = least;
	}
}

/* Payload of a flow passed in a lane. Under the lock. */
static __always_inline void gl_seen(struct gl_activity *activity, struct gl_place *place,
				    __u32 lane, bool pushed, const struct gl_scc_config *config)
{
	__u32 now = activity->slot;
	__u32 age = now - place->slot;
	__u32 last_lane = place->lane & (GL_LANES - 1);
	bool counted = age < GL_WHEEL;
	bool active = counted && age <= activity->idle_slots[last_lane];
	__u32 seen = now;

	lane &= GL_LANES - 1;
	/* A pushed flow takes a place from which it falls out of the count sooner. */
	if (pushed && activity->idle_slots[lane] > activity->pushed_slots[lane])
		seen -= activity->idle_slots[lane] - activity->pushed_slots[lane];
	if (counted && place->slot == seen && last_lane == lane)
		return;
	if (counted) {
		__u16 *last = &activity->count[last_lane][place->slot & (GL_WHEEL - 1)];

		if (*last)
			(*last)--;
	}
	activity->count[lane][seen & (GL_WHEEL - 1)]++;
	place->slot = seen;
	place->lane = lane;
	if (active && last_lane == lane)
		return;
	if (!gl_all_active(activity))
		gl_begin_burst(activity, now);
	activity->join_slot = now;
	/* A sender that was silent: count it at once, for the next acknowledgement is for it. */
	activity->active[lane]++;
	if (active && activity->active[last_lane])
		activity->active[last_lane]--;
	gl_share_out(activity, config);
}

/* Takes note of bytes of payload of a flow that passed in a lane at a time; pushed: the sender
 * had no more to send when it sent the last of them.
 */
static __always_inline void gl_note_payload(struct gl_activity *activity, struct gl_place *place,
					    __u32 lane, __u32 bytes, bool pushed, __u64 now_ns,
					    const struct gl_scc_config *config)
{
	__u32 slot = (__u32)(now_ns / GL_SLOT_NS);

	bpf_spin_lock(&activity->lock);
	/* Clocks of processors differ by a little: the wheel never turns back. */
	if ((__s32)(slot - activity->slot) > 0) {
		__u64 period = now_ns - activity->trim_ns;

		if (period >= GL_TRIM_PERIOD_NS) {
			/* A pause says nothing about how senders use their grants. */
			if (period < 4 * GL_TRIM_PERIOD_NS)
				activity->trim = gl_next_trim(
					activity->trim, activity->arrived,
					config->payload_rate * (period / 1000) / GL_SECOND_US);
			else
				activity->trim = GL_ONE;
			activity->arrived = 0;
			activity->trim_ns = now_ns;
		}
		gl_turn_wheel(activity, slot, config);
		gl_share_out(activity, config);
	}
	activity->arrived += bytes;
	gl_seen(activity, place, lane, pushed, config);
	gl_progress(activity, place, lane, bytes, config);
	bpf_spin_unlock(&activity->lock);
}

#endif
