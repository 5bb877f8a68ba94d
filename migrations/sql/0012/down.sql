COMMENT ON COLUMN stage_outputs.encoding IS 'raw or zlib.';
COMMENT ON COLUMN originals.encoding IS 'raw or zlib.';
COMMENT ON COLUMN outbox.encoding IS 'raw or zlib.';
COMMENT ON COLUMN dead_letters.encoding IS 'raw or zlib.';
