ALTER TABLE observation_keys
    DROP CONSTRAINT observation_keys_seq,
    ADD CONSTRAINT observation_keys_seq UNIQUE (fleet, stream, seq);
