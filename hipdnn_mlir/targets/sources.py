"""Where the rules of AMD's engines were read: the one place that says when."""

from dataclasses import dataclass

READ = "2026-11-24"
"""The day on which every file was last compared with its rule."""


@dataclass(frozen=True)
class Source:
    """Files that a rule follows, in their newest public form on the day that they were read.

    Attributes:
        folder: below the repository's root.
        files: below the folder.
        repository: on GitHub.
        read: the day, as YYYY-MM-DD.
    """

    folder: str
    files: tuple[str, ...]
    repository: str = "ROCm/rocm-libraries"
    read: str = READ
