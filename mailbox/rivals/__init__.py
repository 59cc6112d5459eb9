"""What `ordered` is measured against (Prasaad et al. 2018): a run has them with `rivals=`."""
