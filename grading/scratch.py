"""The scratch folder of a program: how much it has written there, and how it is emptied after each test.

The current folder of the process that uses this. A program may have given it any depth, any names and any rights; in
tier limits it may have shut or removed the folder itself. Left out: making the folder (the host) and mounting it
(walls.py).
"""

from __future__ import annotations

import os

from grading import walls

_UNNAMED_BYTES = 4 * walls.SCRATCH_BYTES


class Gone(Exception):
    """What is needed for a test is gone: the machine's doing, or the program's own; a second try tells."""


class Scratch:
    """may_be_shut: a program may change the rights of the folder itself."""

    def __init__(self, may_be_shut: bool) -> None:
        self.may_be_shut = may_be_shut
        self.folder = -1  # then a way to it, whatever its rights
        self.least_free = 0  # bytes of its disk, when a program is suspected of files that have no name

    def is_small(self) -> bool:
        """Is all that the program has written there within what it may write, as far as one can see in passing?"""
        size, count, top = 0, 0, os.open(".", os.O_RDONLY)
        levels = [["."]]  # folders not looked at yet; down and back again, since a path may be too long to be said
        try:
            while levels and count <= walls.SCRATCH_FILES and size <= walls.SCRATCH_BYTES:
                try:
                    if not levels[-1]:
                        levels.pop()
                        os.chdir("..")
                        continue
                    below: list[str] = []
                    os.chdir(levels[-1].pop())
                    levels.append(below)
                    with os.scandir(".") as entries:
                        for entry in entries:
                            count += 1
                            if entry.is_dir(follow_symlinks=False):
                                below.append(entry.name)
                            else:
                                size += entry.stat(follow_symlinks=False).st_blocks * 512
                except OSError:  # all this is being changed under our eyes
                    continue
        finally:
            os.fchdir(top)
            os.close(top)
        return count <= walls.SCRATCH_FILES and size <= walls.SCRATCH_BYTES

    def note_free_disk(self) -> None:
        """A file without a name is in no folder, and only the disk gets smaller: from here on."""
        free = _free_disk()
        self.least_free = free - min(_UNNAMED_BYTES, free // 2)

    def disk_has_shrunk(self) -> bool:
        """By more than can go unnoticed; by whom is another question."""
        return _free_disk() < self.least_free

    def disk_is_full(self) -> bool:
        return _free_disk() < walls.SCRATCH_BYTES

    def empty(self) -> None:
        """Empty the folder, whatever depth and whatever rights were given to what is in it."""
        if self.may_be_shut:
            if self.folder < 0:
                self.folder = os.open(".", os.O_RDONLY)
            os.fchmod(self.folder, 0o700)
            if os.fstat(self.folder).st_nlink == 0:
                raise Gone("its scratch folder is gone")  # a fresh worker has a fresh one
        if not os.listdir("."):
            return
        top = os.open(".", os.O_RDONLY)
        try:  # one folder at a time, downwards and back: no path grows long, and no level is looked at twice
            levels = [_empty_of_files()]
            while levels:
                if levels[-1]:
                    os.chmod(levels[-1][-1], 0o700)
                    os.chdir(levels[-1][-1])
                    levels.append(_empty_of_files())
                else:
                    levels.pop()
                    if levels:
                        os.chdir("..")
                        os.rmdir(levels[-1].pop())
        finally:
            os.fchdir(top)
            os.close(top)


def _free_disk() -> int:
    disk = os.statvfs(".")
    return disk.f_bavail * disk.f_bsize


def _empty_of_files() -> list[str]:
    """Remove all files of the current folder; what is left are the names of folders."""
    folders = []
    with os.scandir(".") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name)
    return folders
