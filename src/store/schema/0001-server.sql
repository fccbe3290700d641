-- SPDX-License-Identifier: MIT
-- What a server remembers. Lines that begin with "-- postgres:" or "-- sqlite:" are for that one
-- alone. ID_TEXT is text in the order of its bytes: to SQLite a type whose name holds TEXT is text,
-- and its order is that already. Times are microseconds since 1970; 0 is never.

-- postgres: CREATE DOMAIN id_text AS TEXT COLLATE "C";
-- postgres: CREATE FUNCTION now_us() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
-- postgres:     SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT
-- postgres: $$;
-- A text that jsonb refuses (it has no NUL character) contains nothing, and the query goes on.
-- postgres: CREATE FUNCTION json_contains(a TEXT, b TEXT) RETURNS BOOLEAN
-- postgres: LANGUAGE plpgsql IMMUTABLE STRICT AS $$
-- postgres: BEGIN
-- postgres:     RETURN replace(a, '\u0000', '\ufffd')::JSONB
-- postgres:         @> replace(b, '\u0000', '\ufffd')::JSONB;
-- postgres: EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
-- postgres:     RETURN FALSE;
-- postgres: END
-- postgres: $$;

CREATE TABLE assistants (
    id ID_TEXT NOT NULL PRIMARY KEY,
    owner ID_TEXT NOT NULL,
    graph_id ID_TEXT NOT NULL,
    name ID_TEXT NOT NULL,
    description TEXT,
    config TEXT NOT NULL,
    context TEXT NOT NULL,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);
CREATE INDEX assistants_owner ON assistants (owner, updated_us);

CREATE TABLE assistant_versions (
    assistant_id ID_TEXT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    graph_id ID_TEXT NOT NULL,
    name ID_TEXT NOT NULL,
    description TEXT,
    config TEXT NOT NULL,
    context TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    PRIMARY KEY (assistant_id, version)
);

-- run_seq and message_ref are the last numbers given; rest is the status before and after "busy".
-- Updating the row is the lock of the thread.
CREATE TABLE threads (
    id ID_TEXT NOT NULL PRIMARY KEY,
    owner ID_TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    config TEXT NOT NULL DEFAULT '{}',
    status ID_TEXT NOT NULL DEFAULT 'idle',
    interrupts TEXT NOT NULL DEFAULT '{}',
    error TEXT,
    head ID_TEXT,
    ttl TEXT,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    state_updated_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL DEFAULT 0,
    run_seq BIGINT NOT NULL DEFAULT 0,
    message_ref BIGINT NOT NULL DEFAULT 0,
    rest TEXT NOT NULL DEFAULT 'idle'
);
CREATE INDEX threads_owner ON threads (owner, updated_us);
CREATE INDEX threads_expires ON threads (expires_us) WHERE expires_us > 0;

-- seq orders the runs of a thread. attempt is the fencing token and only grows; tries counts the
-- claims that no server gave back.
CREATE TABLE runs (
    id ID_TEXT NOT NULL PRIMARY KEY,
    thread_id ID_TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    owner ID_TEXT NOT NULL,
    seq BIGINT NOT NULL,
    assistant_id ID_TEXT NOT NULL,
    status ID_TEXT NOT NULL,
    metadata TEXT NOT NULL,
    kwargs TEXT NOT NULL,
    multitask TEXT NOT NULL,
    error TEXT,
    checkpoint ID_TEXT,
    worker ID_TEXT,
    cancel TEXT,
    temporary BIGINT NOT NULL,
    attempt BIGINT NOT NULL DEFAULT 0,
    tries BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    start_us BIGINT NOT NULL,
    lease_us BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX runs_thread ON runs (thread_id, seq);
CREATE INDEX runs_owner ON runs (owner, created_us);
CREATE INDEX runs_pending ON runs (created_us, id) WHERE status = 'pending';
CREATE INDEX runs_waiting ON runs (thread_id, seq) WHERE status = 'pending';
-- Unique: two runs of a thread never run at once, whatever a program does.
CREATE UNIQUE INDEX runs_running ON runs (thread_id) WHERE status = 'running';

-- refs is a JSON array of the numbers of messages.
CREATE TABLE checkpoints (
    thread_id ID_TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    id ID_TEXT NOT NULL,
    parent ID_TEXT,
    step BIGINT NOT NULL,
    source TEXT NOT NULL,
    next TEXT NOT NULL,
    tasks TEXT NOT NULL,
    metadata TEXT NOT NULL,
    pending TEXT,
    run_id ID_TEXT,
    refs TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    PRIMARY KEY (thread_id, id)
);

-- run_id: of the run that wrote it, for its rollback.
CREATE TABLE messages (
    thread_id ID_TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    ref BIGINT NOT NULL,
    json TEXT NOT NULL,
    run_id ID_TEXT,
    PRIMARY KEY (thread_id, ref)
);

CREATE TABLE blobs (
    sha256 ID_TEXT NOT NULL PRIMARY KEY,
    mime TEXT NOT NULL,
    data BYTEA NOT NULL,
    created_us BIGINT NOT NULL
);

CREATE TABLE thread_blobs (
    thread_id ID_TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    sha256 ID_TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE,
    PRIMARY KEY (thread_id, sha256)
);
CREATE INDEX thread_blobs_sha256 ON thread_blobs (sha256);

CREATE TABLE items (
    owner ID_TEXT NOT NULL,
    namespace ID_TEXT NOT NULL,
    key ID_TEXT NOT NULL,
    value TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL DEFAULT 0,
    ttl_us BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, namespace, key)
);
CREATE INDEX items_expires ON items (expires_us) WHERE expires_us > 0;

CREATE TABLE crons (
    id ID_TEXT NOT NULL PRIMARY KEY,
    owner ID_TEXT NOT NULL,
    assistant_id ID_TEXT NOT NULL,
    thread_id ID_TEXT REFERENCES threads (id) ON DELETE CASCADE,
    schedule TEXT NOT NULL,
    timezone TEXT,
    payload TEXT NOT NULL,
    metadata TEXT NOT NULL,
    on_run_completed TEXT,
    enabled BIGINT NOT NULL,
    next_us BIGINT NOT NULL,
    end_us BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    updated_us BIGINT NOT NULL
);
CREATE INDEX crons_owner ON crons (owner, created_us);
CREATE INDEX crons_next ON crons (next_us) WHERE enabled = 1;
CREATE INDEX crons_thread ON crons (thread_id);

-- A session may be one of no thread that is stored, so thread_id refers to nothing.
CREATE TABLE exports (
    session_id ID_TEXT NOT NULL,
    path ID_TEXT NOT NULL,
    thread_id ID_TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    PRIMARY KEY (session_id, path)
);
CREATE INDEX exports_thread ON exports (thread_id);

CREATE TABLE sealed_settings (
    owner ID_TEXT NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    updated_us BIGINT NOT NULL
);
