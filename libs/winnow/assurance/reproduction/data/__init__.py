"""Published outcome data; origin and licence stand in `NOTICE.md`."""
