"""Where the rules of AMD's engines were read, and when."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Files that a rule follows, in their newest public form on the day that they were read.

    Attributes:
        read: the day on which the files were last compared with the rule, as YYYY-MM-DD.
        folder: below the repository's root.
        files: below the folder.
        repository: on GitHub.
    """

    read: str
    folder: str
    files: tuple[str, ...]
    repository: str = "ROCm/rocm-libraries"
