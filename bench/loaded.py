"""Ten minutes of music while every core is busy with something else."""

import contextlib
import os
import shutil
import subprocess

import codecs_compared as codecs
import media
import report

SECONDS = 600


def missing_programs():
    return [] if shutil.which("stress-ng") else ["stress-ng"]


@contextlib.contextmanager
def busy():
    """Every core has a thread of stress-ng at normal priority, for as long as this lasts."""
    stress = subprocess.Popen(
        ["stress-ng", "--quiet", "--cpu", str(os.cpu_count())], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        yield stress
        if stress.poll() is not None:
            raise RuntimeError(f"stress-ng ended by itself, status {stress.returncode}")
    finally:
        stress.terminate()
        stress.wait(timeout=10)


def compare_loaded(bench, seconds, failures):
    """Underruns of all players side by side, while stress-ng keeps all cores busy at normal priority."""
    media.encode(bench.target, media.LOOPED, bench.say)
    scenes = [codecs.Scene(recording.label, recording) for recording in media.LOOPED]
    bench.say(f"loaded: {', '.join(scene.label for scene in scenes)}, {seconds} s with every core busy")
    with busy():
        found = codecs.side_by_side(bench, "loaded", scenes, seconds, failures)
    rows = []
    for scene, (seen, notes) in zip(scenes, found):
        by_player = [f"{name} {run.real_time_threads} of {run.memory.threads}" for name, run in seen.items()]
        notes.append(f"real-time threads: {', '.join(by_player)}")
        row = report.Row(scene.label, "underruns", {name: run.xruns for name, run in seen.items()}, report.Limit(0), notes)
        rows.append(row)
        if "segued" in seen:
            own = {"segued": seen["segued"].output["xruns"]}
            rows.append(report.Row(f"{scene.label}, by its own count", "xruns", own, report.Limit(0)))
    cores = os.cpu_count()
    title = f"Underruns in {seconds} s in real time, {cores} cores busy by stress-ng --cpu {cores}"
    return [report.Table(title, rows, ["counted by the card, each player's own"])]
