"""The record types of `extract`: their fields and natural sentences that tell them; draws nothing.

`{field}` in a sentence stands for the value. These sentences serve train and the even seeds of test;
`wording` composes the others, the held-out ones among them.
"""

from typing import NamedTuple

from mezzotint.tasks.values import DATE, EMAIL, IDENTIFIER, NAME, PLACE, PRICE, TIME, Kind, count, one_of


class Field(NamedTuple):
    """One field: its kind of value, and the clauses that tell it alone."""

    kind: Kind
    clauses: tuple[str, ...]


class Record(NamedTuple):
    """One record type: fields by key, and the sentences that tell two or three of them."""

    fields: dict[str, Field]
    sentences: tuple[str, ...]


CONTACT = Record(
    fields={
        "name": Field(NAME, ("The card reads {name}.", "The full name is {name}.", "Everyone knows {name} here.")),
        "email": Field(
            EMAIL, ("Write to {email} first.", "The mail address is {email}.", "Letters reach {email} daily.")
        ),
        "city": Field(PLACE, ("Home is in {city}.", "The family lives in {city}.", "Evenings are spent in {city}.")),
        "age": Field(count(18, 90), ("The age given is {age}.", "Turned {age} this year.", "Now aged {age}.")),
        "job": Field(
            one_of("baker pilot nurse tailor painter lawyer farmer miner singer clerk smith judge"),
            ("Works as a {job} now.", "The job listed is {job}.", "Earns a living as {job}."),
        ),
        "badge": Field(
            IDENTIFIER,
            ("The badge says {badge}.", "Badge number {badge} was issued.", "Wears badge {badge}."),
        ),
    },
    sentences=(
        "We met {name}, a {job} from {city}, at the fair.",
        "A {job} called {name} left the address {email} with us.",
        "From {city} comes our new {job}, aged {age}.",
        "Please add {name}, who is {age} and has badge {badge}.",
        "Badge {badge} belongs to {name}, reachable at {email}.",
        "Our file for {city} now lists {name}, age {age}.",
        "The {age} year old {job} with badge {badge} asked for a call.",
        "Say hello to {name}, who moved to {city} and turned {age}.",
        "Holder of badge {badge} is the {job} named {name}.",
    ),
)

ORDER = Record(
    fields={
        "customer": Field(
            NAME,
            (
                "The customer is {customer}.",
                "It was bought by {customer}.",
                "The buyer signed as {customer}.",
            ),
        ),
        "item": Field(
            one_of("lamp chair table kettle carpet mirror ladder blanket clock basket shelf candle"),
            ("The item is a {item}.", "They wanted the {item} model.", "On the list stood one word, {item}."),
        ),
        "quantity": Field(
            count(2, 400),
            ("The quantity is {quantity}.", "In all {quantity} pieces.", "Pack {quantity} of them."),
        ),
        "price": Field(
            PRICE, ("The price came to {price}.", "Each one costs {price} now.", "We charged {price} for it.")
        ),
        "order": Field(
            IDENTIFIER,
            ("The order number is {order}.", "It is filed as order {order}.", "See order {order} too."),
        ),
        "date": Field(DATE, ("It was placed on {date}.", "The order date is {date}.", "Bought on the day {date}.")),
    },
    sentences=(
        "{customer} ordered {quantity} of the {item} last week.",
        "Order {order} from {customer} is for a {item}.",
        "On {date} we sold {quantity} pieces at {price} each.",
        "Please ship the {item} at {price} to {customer}.",
        "Order {order}, dated {date}, lists {quantity} pieces.",
        "A {item} priced {price} was reserved on {date}.",
        "{quantity} times {item} went out under order {order}.",
        "Under number {order} we noted that {customer} bought on {date}.",
        "For {price} apiece, {quantity} units left for {customer}.",
    ),
)

BOOKING = Record(
    fields={
        "guest": Field(NAME, ("The guest is {guest}.", "It is booked for {guest}.", "We expect {guest} at the door.")),
        "hotel": Field(
            PLACE,
            ("The hotel is called {hotel}.", "They stay at hotel {hotel}.", "The house named {hotel} is it."),
        ),
        "room": Field(
            one_of("single double twin suite family studio attic garden"),
            (
                "The room type is {room}.",
                "A {room} room was chosen.",
                "They prefer to sleep in a {room} room.",
            ),
        ),
        "arrival": Field(
            DATE, ("Arrival is on {arrival}.", "They arrive on {arrival}.", "Check in happens on {arrival}.")
        ),
        "nights": Field(
            count(2, 28),
            ("They stay {nights} nights.", "The nights booked are {nights}.", "Plan {nights} nights."),
        ),
        "code": Field(
            IDENTIFIER,
            ("The booking code is {code}.", "Use code {code} to find it.", "Quote {code} at the desk."),
        ),
    },
    sentences=(
        "{guest} booked a {room} room for {nights} nights.",
        "Hotel {hotel} expects {guest} on {arrival}.",
        "A {room} room at hotel {hotel} is held under code {code}.",
        "For {nights} nights from {arrival} we host {guest}.",
        "Code {code} is a stay of {nights} nights at hotel {hotel}.",
        "Please keep the {room} room free from {arrival} on.",
        "Booking {code} by {guest} starts on {arrival}.",
        "With code {code} in hand, {guest} reaches hotel {hotel} late.",
        "From {arrival} the {room} room is taken for {nights} nights.",
    ),
)

PAYMENT = Record(
    fields={
        "payer": Field(
            NAME,
            ("The payer is {payer}.", "It was paid by {payer}.", "The money left the account of {payer}."),
        ),
        "payee": Field(NAME, ("The payee is {payee}.", "It goes to {payee}.", "The money ends up with {payee}.")),
        "amount": Field(
            PRICE, ("The amount is {amount}.", "In total {amount} was paid.", "The sum comes to {amount}.")
        ),
        "due": Field(DATE, ("It is due on {due}.", "The due date is {due}.", "Settle it before {due}.")),
        "invoice": Field(
            IDENTIFIER,
            ("The invoice is {invoice}.", "It settles invoice {invoice}.", "Bill {invoice} is meant."),
        ),
        "method": Field(
            one_of("cash card cheque transfer voucher wire"),
            ("The method is {method}.", "They paid by {method}.", "The chosen way was {method}."),
        ),
    },
    sentences=(
        "{payer} sent {amount} to {payee} this morning.",
        "Invoice {invoice} over {amount} must be paid by {due}.",
        "We received {amount} from {payer} by {method}.",
        "{payee} got a {method} payment for invoice {invoice}.",
        "By {due} at the latest {payer} pays {payee}.",
        "For invoice {invoice}, {payer} chose {method}.",
        "A {method} payment to {payee} is planned for {due}.",
        "Our books show {payee} owed {amount} on bill {invoice}.",
        "Using {method}, {payer} cleared {amount} at last.",
    ),
)

EVENT = Record(
    fields={
        "host": Field(NAME, ("The host is {host}.", "It is hosted by {host}.", "{host} welcomes the guests.")),
        "venue": Field(PLACE, ("The venue is {venue}.", "It takes place in {venue}.", "Doors open at {venue} early.")),
        "topic": Field(
            one_of("music history gardening cooking chess poetry sailing astronomy pottery"),
            ("The topic is {topic}.", "It is all about {topic}.", "Expect plenty of {topic}."),
        ),
        "date": Field(DATE, ("The date is {date}.", "It happens on {date}.", "Keep {date} free.")),
        "start": Field(TIME, ("It starts at {start}.", "The start is {start}.", "We begin at {start} sharp.")),
        "seats": Field(
            count(10, 900),
            ("There are {seats} seats.", "The hall has {seats} seats.", "Only {seats} can sit down."),
        ),
        "contact": Field(
            EMAIL, ("The contact is {contact}.", "Questions go to {contact}.", "Sign up through {contact}.")
        ),
    },
    sentences=(
        "{host} gives a talk on {topic} in {venue}.",
        "On {date} at {start} we meet in {venue}.",
        "The {topic} evening with {host} has {seats} seats.",
        "Join {host} on {date} and write to {contact}.",
        "{venue} offers {seats} seats for a night of {topic}.",
        "From {start} on, {host} speaks about {topic}.",
        "Reserve one of {seats} seats for {date} at {contact}.",
        "Come to {venue} on {date} to hear {host}.",
        "A {topic} circle for {seats} people opens at {start}.",
    ),
)

PARCEL = Record(
    fields={
        "sender": Field(
            NAME, ("The sender is {sender}.", "It was sent by {sender}.", "The return label shows {sender}.")
        ),
        "receiver": Field(
            NAME,
            ("The receiver is {receiver}.", "It is meant for {receiver}.", "Hand it over to {receiver}."),
        ),
        "town": Field(PLACE, ("The town is {town}.", "It travels to {town}.", "The van drives out to {town}.")),
        "weight": Field(
            PRICE,
            (
                "The weight is {weight} kilos.",
                "It weighs {weight} kilos.",
                "The scale showed {weight} kilos.",
            ),
        ),
        "tracking": Field(
            IDENTIFIER,
            ("Tracking is {tracking}.", "The label says {tracking}.", "Follow it with {tracking}."),
        ),
        "pickup": Field(
            TIME, ("Pickup is at {pickup}.", "It is picked up at {pickup}.", "The courier comes at {pickup}.")
        ),
    },
    sentences=(
        "{sender} mailed a box of {weight} kilos to {town}.",
        "A parcel for {receiver} in {town} waits at the counter.",
        "Parcel {tracking} from {sender} is ready at {pickup}.",
        "At {pickup} we collect {weight} kilos for {receiver}.",
        "Parcel {tracking} goes to {receiver} by van.",
        "{receiver} will get a parcel that {sender} packed.",
        "The box {tracking} of {weight} kilos leaves for {town}.",
        "Bound for {town}, the crate of {sender} shows code {tracking}.",
        "Come by at {pickup} and bring {receiver} the {weight} kilos.",
    ),
)

RECORDS = (CONTACT, ORDER, BOOKING, PAYMENT, EVENT, PARCEL)
