# SPDX-License-Identifier: Apache-2.0
"""From what the arms and the capture saw to figures, a table of 80 columns and a plot."""

import os
import statistics
import subprocess

DSCP_OF_LANE = {"urgent": 36, "high": 22, "normal": 14, "bulk": 0}


def percentile(values, share):
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def flows_of(arm, capture):
    """Captured flows of an arm in its periods; the others' are idle then, but may still acknowledge."""
    return [flow for period in capture["periods"] if period["name"] == arm.name for flow in period["flows"]
            if arm.port in (flow["source_port"], flow["destination_port"])]


def lane_share(arm, capture):
    """Share of the gradient bytes, as logged by the workers, that the capture saw under their lane's DSCP."""
    seen = {}
    for flow in flows_of(arm, capture):
        key = (flow["source"], flow["source_port"], flow["destination"], flow["destination_port"], flow["dscp"])
        seen[key] = seen.get(key, 0) + flow["payload_bytes"]
    logged = right = 0
    for end in arm.byte_log():
        if end["content"] != "gradients":
            continue
        sent = end["slice_bytes"]
        key = (end["local"], end["local_port"], end["remote"], end["remote_port"], list(DSCP_OF_LANE.values())[end["lane"]])
        logged += sent
        right += min(sent, seen.get(key, 0))
    return right / logged if logged else 0.0


def summarise(arm, capture):
    """The figures of one arm; the names are part of result.json."""
    flows = [flow for flow in flows_of(arm, capture) if flow["direction"] == "to"]
    payload = sum(flow["payload_bytes"] for flow in flows)
    wall = sum(block["wall_s"] for block in arm.blocks)
    by_dscp = {}
    for flow in flows:
        if flow["payload_bytes"] == 0:
            continue
        by_dscp[flow["dscp"]] = by_dscp.get(flow["dscp"], 0) + flow["payload_bytes"]
    return {
        "iterations": len(arm.loss),
        "iteration_ms_p50": round(statistics.median(arm.iteration_ms), 3),
        "iteration_ms_p99": round(percentile(arm.iteration_ms, 0.99), 3),
        "iteration_ms": [round(value, 3) for value in arm.iteration_ms],
        "block_ms_p50": [round(statistics.median(block["iteration_ms"][1:-1]), 3) for block in arm.blocks],
        "block_wall_ms": [round(1000 * block["wall_s"] / block["steps"], 3) for block in arm.blocks],
        "goodput_mbit_s": round(payload * 8 / wall / 1e6, 2),
        "retransmitted_segments": arm.counted["RetransSegs"],
        "retransmission_timeouts": arm.counted["TCPTimeouts"],
        "test_accuracy": arm.facts["evaluate"]["test_accuracy"],
        "fingerprint": arm.facts["check"]["fingerprint"],
        "weights_agree": arm.facts["check"]["agree"],
        "bytes_by_dscp": {str(dscp): count for dscp, count in sorted(by_dscp.items(), reverse=True)},
        "overran": sum(block["overran"] for block in arm.blocks),
        "arithmetic_ms": statistics.fmean(block["arithmetic_ms"] for block in arm.blocks),
    }


def _ratio(reference, value, more_is_better=False):
    better, worse = (value, reference) if more_is_better else (reference, value)
    if better == 0 and worse == 0:
        return "1.00x"
    return f"{better / worse:.2f}x" if worse else "-"


def table(result):
    """The result for a person: at most 80 columns."""
    arms = [result["arms"][name] for name in ("plain", "tuned", "gradlane")]
    rows = [("", "plain", "tuned", "gradlane", "vs plain", "vs tuned")]

    def row(title, key, form, more=False, ratio=True):
        values = [arm[key] for arm in arms]
        ratios = [_ratio(values[i], values[2], more) if ratio else "" for i in (0, 1)]
        rows.append((title, *(form.format(value) for value in values), *ratios))

    row("iteration time p50, ms", "iteration_ms_p50", "{:.1f}")
    row("iteration time p99, ms", "iteration_ms_p99", "{:.1f}")
    row("goodput at server, Mbit/s", "goodput_mbit_s", "{:.1f}", more=True)
    row("retransmitted segments", "retransmitted_segments", "{}", ratio=False)
    row("retransmission timeouts", "retransmission_timeouts", "{}", ratio=False)
    for lane, dscp in DSCP_OF_LANE.items():
        counts = [arm["bytes_by_dscp"].get(str(dscp), 0) for arm in arms]
        totals = [sum(arm["bytes_by_dscp"].values()) or 1 for arm in arms]
        rows.append((f"bytes as DSCP {dscp} ({lane}), %",
                     *(f"{100 * count / total:.1f}" for count, total in zip(counts, totals)), "", ""))
    rows.append(("gradients in their lane, %", "-", "-", f"{100 * result['arms']['gradlane']['lane_share']:.1f}",
                 "", ""))
    row("test accuracy", "test_accuracy", "{:.4f}", ratio=False)
    lines = [f"{first:27}" + "".join(f"{cell:>10}" for cell in rest) for first, *rest in rows]
    lines.insert(1, "-" * 77)
    return "\n".join(line.rstrip() for line in lines)


SCRIPT = r"""
set datafile missing '-'
set style line 1 lc rgb '#999999' lw 2
set style line 2 lc rgb '#3b75af' lw 2
set style line 3 lc rgb '#e08214' lw 3
set multiplot layout 2,2 title "One network trained in three ways over 200 Mbit/s, eight workers" font ',15'
set grid lc rgb '#dddddd'; set key bottom right; set border 3; set tics nomirror
set title 'Iteration time: share of iterations that took at most ...'
set xlabel 'ms'; set ylabel 'share'; set yrange [0:1]; set xrange [LOW:HIGH]
plot 'plain.times' u 1:2 w steps ls 1 t 'plain', 'tuned.times' u 1:2 w steps ls 2 t 'tuned', \
     'gradlane.times' u 1:2 w steps ls 3 t 'gradlane'
set title 'Loss: the same bits in all three'; set xrange [*:*]; set yrange [*:*]; set key top right
set xlabel 'iteration'; set ylabel 'training loss'
plot 'plain.loss' u 1:2 w l ls 1 lw 7 t 'plain', 'tuned.loss' u 1:2 w l ls 2 lw 4 t 'tuned', \
     'gradlane.loss' u 1:2 w l ls 3 lw 1 t 'gradlane'
set title 'Loss over time (mean of 15 iterations)'; set xlabel 'seconds of training'; set ylabel 'training loss'
plot 'plain.loss' u 3:4 w l ls 1 t 'plain', 'tuned.loss' u 3:4 w l ls 2 t 'tuned', \
     'gradlane.loss' u 3:4 w l ls 3 t 'gradlane'
set title 'Per 100 iterations'; set style data histogram; set style histogram cluster gap 1
set style fill solid 0.9 noborder; set xlabel ''; set ylabel ''; set boxwidth 0.9
set logscale y; set yrange [0.5:100000]; set xrange [-0.6:1.6]; shown(x) = x < 0.6 ? 0.6 : x
number(x) = x < 10 && x > 0 ? sprintf('%.1f', x) : sprintf('%.0f', x)
plot 'losses.bars' u 2:xtic(1) ls 1 t 'plain', '' u 3 ls 2 t 'tuned', '' u 4 ls 3 t 'gradlane', \
     '' u ($0-0.25):(shown($2)):(number($2)) w labels offset 0,0.6 font ',9' notitle, \
     '' u 0:(shown($3)):(number($3)) w labels offset 0,0.6 font ',9' notitle, \
     '' u ($0+0.25):(shown($4)):(number($4)) w labels offset 0,0.6 font ',9' notitle
unset multiplot
"""


def plot(result, folder):
    """Writes demo.png and demo.svg; returns why not, if gnuplot cannot."""
    arms = result["arms"]
    for name, arm in arms.items():
        times = sorted(arm["iteration_ms"])
        with open(os.path.join(folder, f"{name}.times"), "w", encoding="ascii") as out:
            for rank, value in enumerate(times):
                out.write(f"{value} {(rank + 1) / len(times)}\n")
        # What an iteration takes on average, with the edges of blocks.
        each = sum(arm["block_wall_ms"]) / len(arm["block_wall_ms"]) / 1000
        with open(os.path.join(folder, f"{name}.loss"), "w", encoding="ascii") as out:
            for step, loss in enumerate(result["loss"]):
                recent = result["loss"][max(0, step - 14):step + 1]
                out.write(f"{step} {loss} {step * each} {sum(recent) / len(recent)}\n")
    with open(os.path.join(folder, "losses.bars"), "w", encoding="ascii") as out:
        for title, key in (("retransmitted segments", "retransmitted_segments"),
                           ("timeouts", "retransmission_timeouts")):
            values = (f"{100 * arms[name][key] / arms[name]['iterations']:.1f}" for name in arms)
            out.write(f'"{title}" ' + " ".join(values) + "\n")
    low = min(arm["iteration_ms_p50"] for arm in arms.values()) * 0.8
    high = max(percentile(arm["iteration_ms"], 0.99) for arm in arms.values()) * 1.1
    script = SCRIPT.replace("LOW", f"{low:.0f}").replace("HIGH", f"{high:.0f}")
    for kind, terminal in (("png", "pngcairo size 1200,850 font 'sans,10'"),
                           ("svg", "svg size 1200,850 font 'sans,11' background '#ffffff'")):
        text = f"set terminal {terminal}\nset output 'demo.{kind}'\n{script}"
        try:
            done = subprocess.run(["gnuplot"], input=text, cwd=folder, capture_output=True, text=True,
                                  timeout=60, check=False)
        except FileNotFoundError:
            return "gnuplot is not installed: apt-get install gnuplot-nox"
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[-1]
    return None
