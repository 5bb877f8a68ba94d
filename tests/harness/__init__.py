"""What the tests share: servers, databases, processes and waiting."""
