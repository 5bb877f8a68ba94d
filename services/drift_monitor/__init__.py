"""What runtimes and graders report, stored in order."""
