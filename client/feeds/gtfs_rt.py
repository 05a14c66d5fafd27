"""GTFS-realtime 2.0 as notifications: vehicles, trip updates and alerts, one for each entity.

    vehicle, label, trip, route, position, bearing, speed (m/s), stop, status, time   of a vehicle's position
    trip, route, vehicle, stop, delay (s), time                                   of a trip update: its largest delay
    alert, cause, effect, header, description, route, stop, starts, ends     of an alert, once for each that it informs

Read by the protocol's own bindings.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contrada.errors import CodecError, ContradaError
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_gtfs_rt(data: bytes) -> Iterator[dict[str, Any] | CodecError]:
    """Yield the notifications of a FeedMessage; what is wrong with one entity stands in its stead."""
    from google.protobuf.message import DecodeError
    from google.transit import gtfs_realtime_pb2 as realtime

    message = realtime.FeedMessage()
    try:
        message.ParseFromString(data)
    except (DecodeError, RuntimeError) as error:
        raise CodecError(f"not a GTFS-realtime FeedMessage: {error}") from error
    for entity in message.entity:
        try:
            if entity.is_deleted:
                continue
            if entity.HasField("vehicle"):
                yield _vehicle(entity.vehicle, entity.id)
            if entity.HasField("trip_update"):
                yield _trip_update(entity.trip_update)
            if entity.HasField("alert"):
                yield from _alert(entity.alert, entity.id)
        except (ContradaError, ValueError, OverflowError, OSError) as error:
            yield CodecError(f"entity {entity.id!r:.40}: {error}")


def _vehicle(vehicle: Any, entity: str) -> dict[str, Any]:
    found = _given(
        vehicle=vehicle.vehicle.id or entity,
        label=vehicle.vehicle.label,
        trip=vehicle.trip.trip_id,
        route=vehicle.trip.route_id,
        stop=vehicle.stop_id,
    )
    if vehicle.HasField("position"):
        place = vehicle.position
        found["position"] = Point(place.longitude, place.latitude)
        for name in ("bearing", "speed"):
            if place.HasField(name):
                found[name] = float(getattr(place, name))
    if vehicle.HasField("current_status"):
        found["status"] = type(vehicle).VehicleStopStatus.Name(vehicle.current_status)
    return found | _time(vehicle.timestamp)


def _trip_update(update: Any) -> dict[str, Any]:
    found = _given(trip=update.trip.trip_id, route=update.trip.route_id, vehicle=update.vehicle.id)
    latest, stop = (update.delay, "") if update.HasField("delay") else (None, "")
    for each in update.stop_time_update:
        for event in (each.arrival, each.departure):
            if event.HasField("delay") and (latest is None or event.delay > latest):
                latest, stop = event.delay, each.stop_id
    if latest is not None:
        found["delay"] = int(latest)
    return found | _given(stop=stop) | _time(update.timestamp)


def _alert(alert: Any, entity: str) -> Iterator[dict[str, Any]]:
    kinds = type(alert)
    found = _given(alert=entity, header=_text(alert.header_text), description=_text(alert.description_text))
    found["cause"] = kinds.Cause.Name(alert.cause)
    found["effect"] = kinds.Effect.Name(alert.effect)
    for period in alert.active_period[:1]:
        moments = {"starts": period.start, "ends": period.end}
        found |= {name: _time(moment)["time"] for name, moment in moments.items() if moment}
    if not alert.informed_entity:
        yield found
    for informed in alert.informed_entity:
        yield found | _given(route=informed.route_id, stop=informed.stop_id, trip=informed.trip.trip_id)


def _text(translated: Any) -> str:
    return str(translated.translation[0].text) if translated.translation else ""


def _given(**texts: str) -> dict[str, Any]:
    return {name: text for name, text in texts.items() if text}


def _time(seconds: int) -> dict[str, Any]:
    return {"time": datetime.fromtimestamp(seconds, UTC)} if seconds else {}
