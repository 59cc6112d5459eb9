"""What `ordered` is measured against: the baselines of Prasaad et al. 2018. No product."""
