# A baseline of eight sessions, a day apart, and a receipt that measured the same.
cp "$GOLDEN/receipt-1.json" receipt.json
for day in 1 2 3 4 5 6 7 8; do
    sed "s/2026-11-21T/2026-11-0${day}T/" receipt.json > session.json
    cargo infergate bless --quiet --receipt session.json
done
rm session.json
