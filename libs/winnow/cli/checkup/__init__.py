"""What `winnow doctor` looks at, part by part; each part gives findings and changes nothing."""
