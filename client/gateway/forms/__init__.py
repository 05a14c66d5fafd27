"""What people write and read: JSON, GeoJSON and CloudEvents as notifications, and notifications and filters as JSON."""
