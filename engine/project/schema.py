"""The tables of ``project.sqlite``."""

import secrets
import sqlite3

__all__ = ["APPLICATION_ID", "ID_BYTES", "VERSION", "create"]

APPLICATION_ID = 0x50534350
"""SQLite application id in the file header, which distinguishes a project from any other SQLite database."""

VERSION = 3
"""Version of the project format, stored in the file header; only projects of this version are opened.

Increase it with every change of these tables, of the result tables or of the names of parameters.
"""

ID_BYTES = 16
"""Length of a project's random id in bytes; the database stores it in hexadecimal."""

_TABLES = """
CREATE TABLE identity (id TEXT NOT NULL);
CREATE TABLE inputs (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    kind TEXT NOT NULL,
    UNIQUE (path, sha256, kind)
);
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE,
    kind TEXT NOT NULL,
    parameters TEXT NOT NULL,
    version TEXT NOT NULL,
    device TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    started TEXT NOT NULL,
    finished TEXT,
    message TEXT NOT NULL DEFAULT '',
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started TEXT NOT NULL
);
CREATE TABLE run_inputs (
    run TEXT NOT NULL REFERENCES runs (id),
    position INTEGER NOT NULL,
    input INTEGER NOT NULL REFERENCES inputs (id),
    PRIMARY KEY (run, position)
);
CREATE TABLE results (
    run TEXT NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    rows INTEGER,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (run, name)
);
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    time TEXT NOT NULL,
    level TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX log_of_run ON log (run);
CREATE TABLE run_notes (
    run TEXT PRIMARY KEY REFERENCES runs (id),
    title TEXT NOT NULL,
    note TEXT NOT NULL
);
CREATE TABLE deleted_runs (
    run TEXT PRIMARY KEY REFERENCES runs (id),
    deleted TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started TEXT NOT NULL
);
CREATE TABLE row_marks (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    row INTEGER NOT NULL,
    is_starred INTEGER NOT NULL,
    comment TEXT NOT NULL,
    PRIMARY KEY (run, name, row),
    FOREIGN KEY (run, name) REFERENCES results (run, name) ON DELETE CASCADE
);
CREATE TABLE row_corrections (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    row INTEGER NOT NULL,
    numbers TEXT NOT NULL,
    PRIMARY KEY (run, name, row),
    FOREIGN KEY (run, name) REFERENCES results (run, name) ON DELETE CASCADE
);
"""


def create(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty database, mark it as a project and give it a random id."""
    identity = f"INSERT INTO identity (id) VALUES ('{secrets.token_hex(ID_BYTES)}');"
    header = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
    connection.executescript(f"BEGIN; {_TABLES} {identity} {header} COMMIT;")
