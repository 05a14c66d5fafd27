"""What subscribers get by whichever door: streams, the part of one that a page looks at, resuming, webhooks."""
