"""What the boundary's texts say against an entry: other values, work done, conditions changed, deliverables nobody asked for."""
