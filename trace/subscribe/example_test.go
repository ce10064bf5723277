package subscribe_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/fpm-project/fpm/trace/subscribe"
)

// A publisher that closes after two messages is left when they have come. Whoever records
// would go on: Subscribe connects again for as long as its context lives.
func ExampleSubscribe() {
	ctx, stop := context.WithCancel(context.Background())
	err := subscribe.Subscribe(ctx, subscribe.Endpoint{Address: "tcp://worker:20380"}, subscribe.Options{
		OnMessage: func(frames [][]byte, _ time.Time) {
			fmt.Printf("sequence %d, payload %s\n", frames[1][7], frames[2])
		},
		OnEvent: func(e subscribe.Event) {
			fmt.Println(e.Kind, e.Endpoint)
			if e.Kind == subscribe.Disconnected {
				stop()
			}
		},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return twoMessages(), nil
		},
	})
	fmt.Println(err)
	// Output:
	// connected tcp://worker:20380
	// sequence 1, payload first
	// sequence 2, payload second
	// disconnected tcp://worker:20380
	// context canceled
}

func twoMessages() net.Conn {
	one, _ := net.Pipe()
	said := append(greeting(), ready("PUB")...)
	said = append(append(said, pass(1, []byte("first"))...), pass(2, []byte("second"))...)
	return &reciting{Conn: one, rest: said}
}
