"""Plots as SVG, legible on light and on dark pages: a file for each bench and kind of servers."""

import collections
import math
import pathlib
import statistics
from html import escape

# bench: (figure, its unit, what is better)
MEASURES = {
    "uncontended": ("both_p50_us", "µs for acquire and release (p50)", "shorter is better"),
    "handoff": ("handoff_p50_us", "µs from release to the next one's acquire (p50)", "shorter is better"),
    "wanted": ("wanted_p50_us", "µs to acquire what lingers at another session (p50)", "shorter is better"),
    "drain": ("drain_s", "seconds until all have had their turn", "shorter is better"),
    "tries": ("try_p50_us", "µs for a try of a lock that is held (p50)", "shorter is better"),
    "manylocks": ("locks_per_s", "locks per second", "longer is better"),
}
STYLE = """text { font: 13px sans-serif; fill: #1f2328 } .title { font-weight: bold } .note { font-size: 11px; fill: #59636e }
.raw { fill: #9aa4af } .other { fill: #5b8db8 } .ours { fill: #c8702a } .whisker { stroke: #1f2328; stroke-width: 1.5 } .grid { stroke: #8884 }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .note { fill: #9198a1 } .whisker { stroke: #f0f6fc } }"""
SERVERS = {"standalone": "one server", "ensemble": "three servers"}
STORAGES = {"shm": "data in memory", "disk": "on disk", "nosync": "on disk without fsync"}
PEERS = {
    "zklock-rust": "zklock, Rust",
    "zklock-c": "zklock, C",
    "zklock-py": "zklock, Python",
    "curator": "Curator",
    "zkclient": "zookeeper-client",
    "zkrecipe": "zkr_lock",
}
RAW = {"rust": "Rust", "zkmt": "C client", "wire": "C, wire"}
LEFT, WIDE, ROW, TOP = 120, 440, 24, 56


def ticks(low, high, log):
    if log:
        return [m * 10**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for m in (1, 2, 5)
                if low <= m * 10**e <= high]
    step = 10 ** math.floor(math.log10(high))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if high / s <= 6)
    return [i * step for i in range(int(high / step) + 1)]


def title_of(bench, params, server, storage):
    """The measured work, in words."""
    callers = f"{params.get('k')} sessions" if str(params.get("sessions")) != "1" else f"{params.get('k')} tasks or threads of one client"
    title = {
        "uncontended": "A free lock",
        "handoff": f"Hand-over among {callers}",
        "wanted": "A lock that another session has left lingering",
        "drain": f"{int(params['w']):,} waiters of one client have their turn" if "w" in params else "",
        "tries": "A try of a lock that another session holds",
        "manylocks": f"{int(params['l']):,} locks at once" if "l" in params else "",
    }[bench]
    if "hold" in params:
        title += f" that hold for {params['hold']} ms"
    if "turns" in params:
        title += f", max_local_handoffs({params['turns']})"
    if bench == "uncontended" and "linger" in params:
        title += ", lingering"
    return f"{title}: {SERVERS[server]}, {STORAGES[storage]}"


def name_of(peer):
    client, _, how = peer.partition("-")
    return PEERS.get(peer) or (f"{how} ({RAW[client]})" if client in RAW else peer)


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def plot(title, unit, better, values, failed):
    """values: peer -> a figure of each round. A bar is the median, the whisker goes from the least to the greatest. failed: peers with a star."""
    order = sorted(values, key=lambda peer: statistics.median(values[peer]), reverse=better.startswith("longer"))
    least, most = min(map(min, values.values())), max(map(max, values.values()))
    log = most > 20 * least > 0
    low = least / 2 if log else 0
    scale = lambda v: LEFT + WIDE * (math.log(v / low) / math.log(most / low) if log else v / (most or 1))
    bottom = TOP + ROW * len(order)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 90} {bottom + 44}" role="img">',
           f"<title>{escape(title)}</title><style>{STYLE}</style>",
           f'<text class="title" x="8" y="20">{escape(title)}</text>',
           f'<text class="note" x="8" y="38">{escape(unit)}{", logarithmic" if log else ""}; {better}</text>']
    for tick in ticks(low or least, most, log) if most else []:
        x = scale(tick)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{bottom}"/>'
                   f'<text class="note" text-anchor="middle" x="{x:.1f}" y="{bottom + 14}">{number(tick)}</text>')
    for i, peer in enumerate(order):
        y, x = TOP + ROW * i, scale(statistics.median(values[peer]))
        kind = "ours" if peer.startswith("zklock") else "raw" if peer.startswith(("wire-", "zkmt-", "rust-")) else "other"
        a, b = scale(min(values[peer])), scale(max(values[peer]))
        out.append(f'<text text-anchor="end" x="{LEFT - 8}" y="{y + 14}">{escape(name_of(peer))}</text>'
                   f'<rect class="{kind}" x="{LEFT}" y="{y + 2}" width="{x - LEFT:.1f}" height="{ROW - 8}"/>'
                   f'<line class="whisker" x1="{a:.1f}" x2="{b:.1f}" y1="{y + 10}" y2="{y + 10}"/>'
                   f'<text x="{b + 6:.1f}" y="{y + 14}">{number(statistics.median(values[peer]))}{" *" if peer in failed else ""}</text>')
    rounds = sorted({len(v) for v in values.values()})
    out.append(f'<text class="note" x="8" y="{bottom + 34}">Bars: median of {" or ".join(map(str, rounds))} rounds; whiskers: '
               f"least and greatest. Grey: the protocol alone.{' *: failed in other rounds.' if failed else ''}</text></svg>")
    return "\n".join(out) + "\n"


def write(rows, folder):
    """Returns the files. A peer that failed in a round, or let two hold a lock, has a star or no bar."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        groups[row["server"], row["storage"], row["bench"], tuple(row["params"].items())][row["peer"]].append(row)
    folder, files = pathlib.Path(folder), []
    folder.mkdir(parents=True, exist_ok=True)
    for (server, storage, bench, params), peers in groups.items():
        figure, unit, better = MEASURES[bench]
        values, failed = {}, set()
        for peer, rounds in peers.items():
            good = [row["figures"] for row in rounds if "figures" in row]
            if not good or any(f.get("violations") for f in good):
                continue
            values[peer] = [f[figure] for f in good]
            if len(good) < len(rounds):
                failed.add(peer)
        if not values:
            continue
        file = folder / ("-".join([bench, server, storage, *(f"{k}{v}" for k, v in params)]) + ".svg")
        file.write_text(plot(title_of(bench, dict(params), server, storage), unit, better, values, failed))
        files.append(file)
    return files
