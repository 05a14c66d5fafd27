"""What a replay tells: counts, pictures, and one page."""
