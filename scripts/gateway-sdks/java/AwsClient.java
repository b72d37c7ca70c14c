import java.net.URI;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.ResponseBytes;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.HeadObjectRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Object;
import software.amazon.awssdk.transfer.s3.S3TransferManager;
import software.amazon.awssdk.transfer.s3.model.DownloadRequest;

/**
 * The AWS SDK for Java: its blocking client, that of Netty, or that of the C runtime, which alone asks for parts: Netty's
 * with multipartEnabled now and then never ends an answer that is empty (2.57.8, against any server).
 */
final class AwsClient implements Clients.Client {
  private static final int PART_BYTES = 5 << 20;
  /** Undefined: the client is asynchronous. */
  private final S3Client blocking;
  private final S3AsyncClient async;

  AwsClient(String name, String endpoint) {
    StaticCredentialsProvider keys = StaticCredentialsProvider.create(AwsBasicCredentials.create("any", "any"));
    URI uri = URI.create(endpoint);
    blocking =
        name.equals("aws-sdk-java")
            ? S3Client.builder()
                .endpointOverride(uri)
                .region(Region.US_EAST_1)
                .credentialsProvider(keys)
                .forcePathStyle(true)
                .build()
            : null;
    async =
        name.equals("aws-sdk-java-crt")
            ? S3AsyncClient.crtBuilder()
                .endpointOverride(uri)
                .region(Region.US_EAST_1)
                .credentialsProvider(keys)
                .forcePathStyle(true)
                .minimumPartSizeInBytes((long) PART_BYTES)
                .build()
            : S3AsyncClient.builder()
                .endpointOverride(uri)
                .region(Region.US_EAST_1)
                .credentialsProvider(keys)
                .forcePathStyle(true)
                .build();
  }

  @Override
  public List<String> ask(Clients.Question q) throws Exception {
    switch (q.verb()) {
      case "list":
        ListObjectsV2Request listing =
            ListObjectsV2Request.builder().bucket(q.bucket()).prefix(q.key()).maxKeys(7).build();
        if (blocking != null)
          return blocking.listObjectsV2Paginator(listing).contents().stream().map(S3Object::key).toList();
        List<String> keys = new CopyOnWriteArrayList<>();
        async.listObjectsV2Paginator(listing).contents().subscribe(object -> keys.add(object.key())).join();
        return keys;
      case "head":
        HeadObjectRequest wanted = HeadObjectRequest.builder().bucket(q.bucket()).key(q.key()).build();
        HeadObjectResponse found = blocking != null ? blocking.headObject(wanted) : async.headObject(wanted).join();
        return List.of("", "" + found.contentLength(), found.eTag().replace("\"", ""));
      case "get":
        GetObjectRequest object =
            GetObjectRequest.builder().bucket(q.bucket()).key(q.key()).range(q.span()).ifMatch(q.match()).build();
        return digest(
            blocking != null
                ? blocking.getObjectAsBytes(object)
                : async.getObject(object, AsyncResponseTransformer.toBytes()).join());
      case "parts":
        try (S3TransferManager manager = S3TransferManager.builder().s3Client(async).build()) {
          return digest(
              manager
                  .download(
                      DownloadRequest.builder()
                          .getObjectRequest(get -> get.bucket(q.bucket()).key(q.key()))
                          .responseTransformer(AsyncResponseTransformer.<GetObjectResponse>toBytes())
                          .build())
                  .completionFuture()
                  .join()
                  .result());
        }
      default:
        PutObjectRequest upload = PutObjectRequest.builder().bucket(q.bucket()).key(q.key()).build();
        byte[] body = new byte[8 << 20];
        if (blocking != null) blocking.putObject(upload, RequestBody.fromBytes(body));
        else async.putObject(upload, AsyncRequestBody.fromBytes(body)).join();
        return List.of();
    }
  }

  private static List<String> digest(ResponseBytes<GetObjectResponse> found) throws Exception {
    return Clients.digest(found.asByteArray(), found.response().eTag());
  }
}
