from callboard.nets.kernel.carrier import Carrier
from callboard.nets.kernel.record import MovingRecord

def remains(carrier: Carrier) -> list[MovingRecord]: ...
