package stream

import (
	"io"
	"testing"
	"time"
)

// BenchmarkPublish publishes to a subscriber that reads as fast as it can: the story, the
// encoding, the queue and the socket.
func BenchmarkPublish(b *testing.B) {
	opt := options()
	opt.Lossless, opt.Linger = true, time.Minute
	r := newRank(&opt, 0, 0)
	if err := r.bind(&opt); err != nil {
		b.Fatal(err)
	}
	raw := dial(b, r.Address)
	subscribeOn(b, raw)
	received := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, raw) // up to the end
		received <- n
		raw.Close()
	}()
	<-r.socket.joined
	size := len(r.message.wire)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		r.publish(&opt)
	}
	r.socket.close(time.Now().Add(opt.Linger))
	if n := <-received; n != int64(size)*int64(r.Sent) || r.Lost != 0 {
		b.Errorf("%d bytes of %d messages of %d bytes; %d lost", n, r.Sent, size, r.Lost)
	}
}
