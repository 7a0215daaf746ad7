package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/IBM/sarama"
)

type saramaJob struct {
	name string
	cl   sarama.Client
}

func newSarama(addr, name string) (library, error) {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	cl, err := sarama.NewClient([]string{addr}, c)
	return &saramaJob{name, cl}, err
}

func (s *saramaJob) close() { _ = s.cl.Close() }

func (s *saramaJob) createTopic(context.Context) error {
	a, err := sarama.NewClusterAdminFromClient(s.cl)
	if err != nil {
		return err
	}
	return a.CreateTopic(s.name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

func (s *saramaJob) produce(_ context.Context, lo, hi int) error {
	p, err := sarama.NewSyncProducerFromClient(s.cl)
	if err != nil {
		return err
	}
	var all []*sarama.ProducerMessage
	for i := lo; i < hi; i++ {
		all = append(all, &sarama.ProducerMessage{Topic: s.name, Partition: int32(i % partitions), Value: sarama.StringEncoder(strconv.Itoa(i))})
	}
	return errors.Join(p.SendMessages(all), p.Close())
}

func (s *saramaJob) consume(ctx context.Context, assigned, note func(int)) error {
	c := s.cl.Config()
	var addrs []string
	for _, b := range s.cl.Brokers() {
		addrs = append(addrs, b.Addr())
	}
	g, err := sarama.NewConsumerGroup(addrs, s.name, c)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err = g.Consume(ctx, []string{s.name}, &claims{assigned, note}); err != nil && ctx.Err() == nil {
			break
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, g.Close())
}

// claims are the partitions of one generation.
type claims struct{ assigned, note func(int) }

func (c *claims) Setup(s sarama.ConsumerGroupSession) error {
	for _, ps := range s.Claims() {
		c.assigned(len(ps))
	}
	return nil
}

func (c *claims) Cleanup(s sarama.ConsumerGroupSession) error {
	s.Commit()
	return nil
}

func (c *claims) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			s.MarkMessage(m, "")
			n, _ := strconv.Atoi(string(m.Value))
			c.note(n)
		case <-s.Context().Done():
			return nil
		}
	}
}

func (s *saramaJob) committed(context.Context) (total int64, err error) {
	a, err := sarama.NewClusterAdminFromClient(s.cl)
	if err != nil {
		return 0, err
	}
	got, err := a.ListConsumerGroupOffsets(s.name, map[string][]int32{s.name: {0, 1, 2, 3}})
	if err != nil {
		return 0, err
	}
	for _, p := range got.Blocks[s.name] {
		total += p.Offset
	}
	return total, nil
}
